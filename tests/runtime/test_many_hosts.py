"""Jobs on several hosts, whose proxies are children of the launcher: what needs no network (`tests/hosts` has one)."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import srun
from launching import LOOKS_FOR_SECRET, OMPYRUN, POWERLESS, Launch, launch, mpi, python

from ompy.runtime import hostfile, mapping
from ompy.runtime.hostfile import Host
from ompy.runtime.proxy import Proxy
from ompy.runtime.remote_ranks import RemoteRanks

HERE = ("--mca", "plm", "local")
HOSTS = (*HERE, "--host", "a:2,b:1")


def test_ranks_of_all_hosts_make_one_world() -> None:
    job = launch(*HOSTS, *mpi("print(rank, comm.Get_size(), comm.allreduce(rank), os.environ['MPI_LOCALNRANKS'])"))
    assert sorted(job.stdout.splitlines()) == ["0 3 3 2", "1 3 3 2", "2 3 3 1"]
    assert job.stderr == ""


def test_ranks_here_and_elsewhere_make_one_world() -> None:
    job = launch(*HERE, "--host", "a:1,localhost:2", *mpi("print(rank, comm.allreduce(rank))"))
    assert sorted(job.stdout.splitlines()) == ["0 3", "1 3", "2 3"]


def test_only_cards_of_ranks_that_are_talked_to_travel(tmp_path: Path) -> None:
    # Each rank meets rank 0, whose card all read at the start, and its neighbour to the right.
    source = f"""
import sys
from ompy.runtime import remote_ranks
from ompy.cli.ompyrun import main
asked = []
hear = remote_ranks.RemoteRanks.hear_get
def listen(host, job, key):
    asked.append(key)
    hear(host, job, key)
remote_ranks.RemoteRanks.hear_get = listen
code = main()
print(sorted(set(asked)), file=open({str(tmp_path / "asked")!r}, "w"))
sys.exit(code)
"""
    body = "if rank < 2: comm.sendrecv(0, dest=1 - rank, source=1 - rank)"
    with Launch(*HERE, "--host", "a:1,b:1,c:1,d:1", *mpi(body), command=python(source)) as job:
        assert job.finish() == 0, job.stderr
    assert {key.rpartition(".")[0] for key in re.findall(r"'([^']+)'", (tmp_path / "asked").read_text())} == {
        "0.card",
        "1.card",
    }


@pytest.mark.parametrize("victim", ["rank", "proxy"])
def test_who_is_killed_on_another_host_is_named_and_nothing_is_left(victim: str) -> None:
    source = "print(os.getpid() if VICTIM == 'rank' else os.getppid(), rank, flush=True)\ncomm.recv(source=rank)"
    with Launch(*HOSTS, *mpi(f"VICTIM = {victim!r}\n" + source)) as job:
        numbers = dict(reversed(line.split()) for line in job.lines(3))
        os.kill(int(numbers["2"]), signal.SIGKILL)
        assert job.finish() != 0
        # On one machine the keeper of b ends the ranks of a too, and which of the two is heard first is chance: `tests/hosts`
        # tells hosts apart.
        lost = r"host b is lost with rank 2: |rank [01] \(a, \d+\) killed by SIGKILL"
        assert re.search(r"rank 2 \(b, " if victim == "rank" else lost, job.stderr), job.stderr
        assert job.wait_until_gone() == []


def test_a_launcher_that_is_killed_takes_proxies_and_ranks_with_it() -> None:
    with Launch(*HOSTS, *mpi("print('up', flush=True)\ncomm.recv(source=rank)")) as job:
        job.lines(3)
        os.kill(job.process.pid, signal.SIGKILL)
        assert job.wait_until_gone(10) == []


def test_a_launcher_that_is_killed_takes_agents_with_it_that_have_started_nothing_yet(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "up")
    agent = f"sh -c 'trap : TERM HUP; echo up > {tmp_path}/up; while :; do sleep 600; done'"
    with Launch("--launch-agent", agent, "--host", "a:1", "true") as job:
        assert (tmp_path / "up").read_text() == "up\n"
        os.kill(job.process.pid, signal.SIGKILL)
        assert job.wait_until_gone(30) == []


def test_a_launcher_that_is_killed_before_it_knows_of_its_agent_takes_it_with_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "up")
    agent = f"sh -c 'trap : TERM HUP; echo up > {tmp_path}/up; while :; do sleep 600; done'"
    # The agent is up, and the next thing that the launcher does is to die.
    dies = f"lambda *_: open({str(tmp_path / 'up')!r}).read() and os.kill(os.getpid(), signal.SIGKILL)"
    source = f"""
import os, signal, sys
from ompy.cli.ompyrun import main
from ompy.runtime.local_ranks import LocalRanks

LocalRanks.watch_agent = {dies}
sys.argv[0] = "ompyrun"
main()
"""
    command = [*python(source), "--launch-agent", agent, "--host", "a:1", "true"]
    with Launch(command=command) as job:
        assert job.process.wait(30) == -signal.SIGKILL
        assert job.wait_until_gone(30) == []


# Of hosts a and b the test stops b's proxy, which is then lost.
LOSES_HOST = """
comm.Set_errhandler(MPI.ERRORS_RETURN)
def tried(call):
    try:
        return call()
    except MPI.Exception as error:
        print(error.Get_error_class() == MPI.{error}, error, flush=True)
def spawned(host=None):
    child = "from ompy import MPI; MPI.Comm.Get_parent().Barrier()"
    hint = MPI.Info.Create({{"host": host}}) if host else MPI.INFO_NULL
    MPI.COMM_SELF.Spawn(sys.executable, ["-c", child], 2, hint).Barrier()
    print("spawned", flush=True)
if rank == 0: {before}
print(os.getppid(), rank, flush=True)
if rank == 1: signal.pause()
sys.stdin.readline()
"""


def lose_host(source: str, error: str = "ERR_PROC_FAILED", before: str = "pass") -> str:
    """What rank 0 of a job that goes on prints in `source`, once the proxy of the other host is stopped."""
    words = (*HERE, "--host", "a:1,b:1", "--enable-recovery")
    with Launch(*words, *mpi(LOSES_HOST.format(error=error, before=before) + source), stdin="go\n") as job:
        proxies = dict(reversed(line.split()) for line in job.lines(2))
        os.kill(int(proxies["1"]), signal.SIGSTOP)
        job.finish(90)
        assert "host b is lost with rank 1: nothing was heard from it" in job.stderr
        assert job.wait_until_gone(15) == []
    return job.stdout


def test_who_waits_for_what_a_lost_host_was_asked_is_told_of_the_loss() -> None:
    told = lose_host("tried(lambda: comm.send(None, dest=1))\ntried(lambda: comm.recv(source=1))")
    assert re.match(r"True .*1\.card\.0 .* is lost: the launcher says that its owner was killed by SIGKILL\nTrue .*\n$", told)


# Of a rank that it has met rank 0 has nothing to ask: it is the spawn that the host owes an answer.
@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("comm.send(None, dest=1)", "host b is lost: nothing was heard from it for 7.5 s"),
        ("pass", "host b is none of the job's, or lost; there are a"),
    ],
    ids=["met", "never met"],
)
def test_a_spawn_on_a_host_that_is_lost_meanwhile_is_an_error(before: str, reason: str) -> None:
    told = lose_host("tried(lambda: spawned('b'))\nspawned('a')", error="ERR_SPAWN", before=before)
    assert re.match(rf"True .*{reason}\nspawned\n$", told)


def test_what_is_spawned_after_the_loss_of_a_host_runs_on_those_that_are_left() -> None:
    told = lose_host("tried(lambda: comm.recv(source=1))\nspawned()\ntried(lambda: spawned('b'))")
    assert re.match(r"True .*\nspawned\nFalse .*host b is none of the job's, or lost; there are a\n$", told)


def test_what_comes_late_for_a_job_that_is_over_is_for_nobody() -> None:
    host = RemoteRanks("a", SimpleNamespace(launcher=SimpleNamespace(spaces={})))
    host.on_frame({"cmd": "barrier", "job": 1, "ranks": [0]}, b"")
    host.on_frame({"cmd": "value", "job": 1, "key": "0.card.0", "value": None}, b"")
    Proxy({}, "a").take({"cmd": "answer", "job": 1, "rank": 0, "line": "cmd=spawn_result rc=0"}, b"")


def test_a_launcher_has_as_many_descriptors_as_its_proxies_need() -> None:
    little = ("sh", "-c", 'ulimit -Sn 28; exec "$@"', "sh", *OMPYRUN)
    with Launch(*HERE, "--host", "a,b,c,d,e,f,g,h", "sh", "-c", "echo $PMI_RANK", command=little) as job:
        assert job.finish(90) == 0, job.stderr
    assert sorted(job.stdout.split()) == list("01234567")


def test_a_proxy_has_as_many_descriptors_as_its_ranks_need(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\nulimit -Sn 64\nexec sh -c "$2"\n')
    agent.chmod(0o755)
    job = launch("--launch-agent", str(agent), "--host", "a:24", "sh", "-c", "echo $PMI_RANK")
    assert sorted(map(int, job.stdout.split())) == list(range(24)), job.stderr


def test_the_secret_is_on_no_command_line_and_in_no_environment() -> None:
    job = launch(*HOSTS, *mpi(LOOKS_FOR_SECRET))
    assert job.stdout.split() == ["64"] * 3, job.stderr


def test_a_proxy_that_never_calls_is_told_after_the_limit() -> None:
    job = launch("--launch-agent", "sh -c 'sleep 60'", "--mca", "ompyrun_start_timeout", "1", "--host", "a:1", "true")
    assert job.process.returncode == 1
    assert "host a: no proxy has called back within 1 s" in job.stderr
    assert job.seconds < 30


def test_time_is_over_while_a_proxy_is_awaited() -> None:
    job = launch("--launch-agent", "sh -c 'sleep 60'", "--timeout", "1", "--report-state-on-timeout", "--host", "a:1", "true")
    assert (job.process.returncode, "time is over after 1 s" in job.stderr) == (124, True)


def test_an_agent_that_fails_is_told_with_its_words() -> None:
    job = launch("--launch-agent", "sh -c 'echo no way >&2; exit 5'", "--host", "a:1", "true")
    assert job.process.returncode == 1
    assert "host a: no way" in job.stderr
    assert "exited with code 5" in job.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="a process of another user is wanted")
def test_an_agent_that_may_not_be_killed_does_not_hold_up_the_end() -> None:
    agent = f"{sys.executable} -c 'import os, time; os.setuid(1); time.sleep(600)'"
    words = ("--launch-agent", agent, "--mca", "ompyrun_start_timeout", "1", "--host", "a:1", "true")
    with Launch(*words, command=(*python(POWERLESS), *OMPYRUN)) as job:
        assert job.finish() == 1
        assert "no proxy has called back within 1 s" in job.stderr
        assert "Traceback" not in job.stderr
        assert len(job.living()) == 1


def test_an_agent_that_is_not_there_is_named() -> None:
    job = launch("--launch-agent", "no-such-agent", "--host", "a:1", "true")
    assert job.process.returncode == 1
    assert "there is no command 'no-such-agent' here" in job.stderr


def test_an_agent_that_is_no_command_line_is_named() -> None:
    job = launch("--launch-agent", "ssh 'never closed", "--host", "a:1", "true")
    assert job.process.returncode == 1
    assert """plm_ssh_agent "ssh 'never closed" is no command line""" in job.stderr


@pytest.mark.parametrize(
    ("order", "more", "expected"),
    [
        ("slot", {}, "aaabb"),
        ("node", {}, "ababa"),
        ("slot", {"a_host": 3}, "aaabb"),
        ("node", {"ranks": 3}, "aba"),
        ("slot", {"ranks": 7, "oversubscribe": True}, "aaaabbb"),
    ],
)
def test_ranks_are_spread_over_hosts(order: str, more: dict[str, int], expected: str) -> None:
    arguments = {"ranks": 5} | more
    assert "".join(mapping.spread([Host("a", 3), Host("b", 2)], arguments.pop("ranks"), order, **arguments)) == expected


def test_no_host_takes_more_than_its_limit() -> None:
    hosts = [Host("a", 1, 2), Host("b", 1, 1)]
    assert mapping.spread(hosts, 3, "slot", oversubscribe=True) == ["a", "a", "b"]
    with pytest.raises(ValueError, match="max-slots of the hosts given are 3"):
        mapping.spread(hosts, 4, "slot", oversubscribe=True)


def test_an_allocation_of_slurm_is_read() -> None:
    environment = {
        "SLURM_JOB_ID": "1",
        "SLURM_JOB_NODELIST": "node[1-2,07],login,r[1-2]c[3,5]-ib",
        "SLURM_TASKS_PER_NODE": "2(x2),1,4(x5)",
    }
    found = [(host.name, host.slots) for host in hostfile.allocated(environment)]
    assert found == [("node1", 2), ("node2", 2), ("node07", 1), ("login", 4)] + [
        (f"r{row}c{column}-ib", 4) for row in (1, 2) for column in (3, 5)
    ]


@pytest.mark.parametrize("variable", hostfile.FILE_VARIABLES)
def test_a_host_file_that_the_environment_names_is_read(variable: str, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("a slots=2\nb slots=3 max-slots=3\n")
    job = launch(*HERE, "--display", "map", "true", environment={variable: str(tmp_path / "hosts")})
    assert re.findall(r"rank \d: host (\w)", job.stderr) == ["a", "a", "b", "b", "b"]


def test_srun_starts_all_proxies(tmp_path: Path) -> None:
    environment = srun.install(tmp_path, "node[1-2]") | {"SLURM_TASKS_PER_NODE": "2,1"}
    job = launch("-l", *mpi("print(comm.allreduce(rank), os.environ['SLURMD_NODENAME'])"), environment=environment)
    assert sorted(job.stdout.splitlines()) == ["[0] 3 node1", "[1] 3 node1", "[2] 3 node2"], job.stderr
