"""Proxies that start proxies: what a job on many hosts has it has through others too.  All hosts are this machine."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from launching import LOOKS_FOR_SECRET, Launch, launch, mpi, python

from ompy.runtime.children import branches

LOCAL = ("--mca", "plm", "local")
CHAIN = ("--mca", "ompyrun_fan_out", "1")  # of a, b, c each starts the next one
HOSTS = (*LOCAL, *CHAIN, "--host", "a:1,b:1,c:2")
# A launch agent, as ssh is called, for which c is another host than those before it.
AGENT = """sh -c 'case $0 in c) {};; *) exec sh -c "$1";; esac'"""


@pytest.mark.parametrize("fan_out", [1, 2, 3, 31, 32, 33, 65536])
@pytest.mark.parametrize("count", [1, 2, 31, 32, 33, 64, 65, 1000, 65536])
def test_every_host_is_in_one_branch_and_no_branch_is_much_longer(fan_out: int, count: int) -> None:
    hosts = [f"n{number}" for number in range(count)]
    found = branches(hosts, fan_out)
    assert [name for host, behind in found.items() for name in (host, *behind)] == hosts
    assert len(found) == min(fan_out, count)
    lengths = {len(behind) for behind in found.values()}
    assert max(lengths) - min(lengths) <= 1


def test_no_host_is_behind_another_one_where_all_are_started_at_once() -> None:
    assert branches(["a", "b", "c"], 0) == branches(["a", "b", "c"], 3) == {"a": [], "b": [], "c": []}


def test_ranks_of_all_hosts_make_one_world() -> None:
    job = launch(*HOSTS, "-l", *mpi("print(comm.Get_size(), comm.allreduce(rank), os.environ['MPI_LOCALNRANKS'])"))
    assert sorted(job.stdout.splitlines()) == ["[0] 4 6 1", "[1] 4 6 1", "[2] 4 6 2", "[3] 4 6 2"]
    assert job.stderr == ""


def test_each_proxy_starts_those_of_its_branch() -> None:
    # The agent says who has started it: of nine hosts the launcher starts three, and each of these two.
    agent = """sh -c 'echo $0 by $PPID; exec sh -c "$1"'"""
    hosts = ",".join("abcdefghi")
    job = launch("--mca", "ompyrun_fan_out", "3", "--launch-agent", agent, "--host", hosts, "-l", "sh", "-c", "echo $PMI_RANK")
    assert sorted(job.stdout.splitlines()) == [f"[{rank}] {rank}" for rank in range(9)]
    starters = dict(re.findall(r"host (\w): \w by (\d+)", job.stderr))
    assert len(starters) == 9, job.stderr
    groups = [{starters[host] for host in group} for group in ("adg", "bc", "ef", "hi")]
    assert all(len(group) == 1 for group in groups), starters
    assert len(set.union(*groups)) == 4, starters


def test_long_output_arrives_whole_from_the_last_host() -> None:
    with Launch(*HOSTS, *mpi("for _ in range(100): print('x' * 100_000)\nprint('end', rank)")) as job:
        assert job.finish(90) == 0, job.stderr
    lines = job.stdout.splitlines()
    assert lines.count("x" * 100_000) == 400
    assert sorted(line for line in lines if line.startswith("end")) == [f"end {rank}" for rank in range(4)]


@pytest.mark.parametrize(("target", "readers"), [("3", {3}), ("all", {0, 1, 2, 3})])
def test_input_goes_to_the_rank_that_is_to_have_it(target: str, readers: set[int]) -> None:
    text = "line\n" * 100_000
    job = launch(*HOSTS, "--stdin", target, *mpi("text = sys.stdin.read(); print(rank, len(text))"), stdin=text)
    assert sorted(job.stdout.splitlines()) == [f"{rank} {len(text) * (rank in readers)}" for rank in range(4)], job.stderr


def test_exit_code_and_variables_come_through(tmp_path: Path) -> None:
    source = "print(os.environ['WORD'], os.getcwd())\ncomm.Barrier()\nif rank == 3: sys.exit(7)"
    job = launch(*HOSTS, "-x", "WORD=a b'c", "--wdir", str(tmp_path), *mpi(source))
    assert job.process.returncode == 7, job.stderr
    assert set(job.stdout.splitlines()) == {f"a b'c {tmp_path}"}
    assert "rank 3 (c, " in job.stderr


def test_signals_reach_the_last_host() -> None:
    source = "signal.signal(signal.SIGUSR1, lambda *_: os._exit(0))\nprint('up', flush=True)\nwhile True: time.sleep(60)"
    with Launch(*HOSTS, *python("import os, signal, time\n" + source)) as job:
        assert job.lines(4) == ["up"] * 4
        job.process.send_signal(signal.SIGUSR1)
        assert job.finish(60) == 0, job.stderr


def test_who_waits_for_whom_is_told_with_stacks() -> None:
    source = "comm.Barrier()\nif rank in (1, 3): comm.Ssend(bytearray(8), dest=4 - rank, tag=7)"
    words = ("--timeout", "8", "--report-state-on-timeout", "--get-stack-traces")
    job = launch(*HOSTS, *words, *mpi(source))
    assert job.process.returncode == 124
    assert "cycle of waits: rank 1 waits for rank 3 in Ssend; rank 3 waits for rank 1 in Ssend" in job.stderr
    assert job.stderr.count('File "<string>", line 6') == 2


def test_ranks_of_distant_hosts_publish_names_and_start_others() -> None:
    source = """
port = MPI.Open_port() if rank == 3 else ""
if rank == 3:
    MPI.Publish_name("service", port)
port = comm.bcast(port, 3)
print(rank, MPI.Lookup_name("service") == port)
there = comm.Spawn(sys.executable, ["-c", "from ompy import MPI; MPI.Comm.Get_parent().Barrier()"], 3)
there.Barrier()
"""
    job = launch(*HOSTS, *mpi(source))
    assert sorted(job.stdout.splitlines()) == [f"{rank} True" for rank in range(4)], job.stderr


@pytest.mark.parametrize("victim", ["rank", "proxy"])
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_who_is_killed_is_named_and_nothing_is_left(victim: str, rank: int) -> None:
    source = "print(os.getpid() if VICTIM == 'rank' else os.getppid(), rank, flush=True)\ncomm.recv(source=rank)"
    with Launch(*HOSTS, *mpi(f"VICTIM = {victim!r}\n" + source)) as job:
        numbers = dict(reversed(line.split()) for line in job.lines(4))
        os.kill(int(numbers[str(rank)]), signal.SIGKILL)
        assert job.finish(60) != 0
        # On one machine the keeper of a proxy ends the ranks of all: `tests/hosts` tells hosts apart.
        lost = rf"host {'abcc'[rank]} is lost with rank|rank \d \([abc], \d+\) killed by SIGKILL"
        assert re.search(rf"rank {rank} \(" if victim == "rank" else lost, job.stderr), job.stderr
        assert job.wait_until_gone(15) == []


def test_a_launcher_that_is_killed_takes_all_with_it() -> None:
    with Launch(*HOSTS, *mpi("print('up', flush=True)\ncomm.recv(source=rank)")) as job:
        job.lines(4)
        os.kill(job.process.pid, signal.SIGKILL)
        assert job.wait_until_gone(15) == []


def test_a_job_that_recovers_goes_on_without_a_rank_of_the_last_host() -> None:
    source = """
comm.Set_errhandler(MPI.ERRORS_RETURN)
if rank == 3:
    for source in range(3):
        comm.recv(source=source)
    os.kill(os.getpid(), signal.SIGKILL)
comm.send("ready", 3)
try:
    comm.recv(source=3)
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
alive = comm.Create_group(comm.group.Excl([3]))
print("alive", alive.allreduce(1), flush=True)
"""
    job = launch(*HOSTS, "--enable-recovery", *mpi(source))
    assert job.stdout.splitlines() == ["alive 3"] * 3, job.stderr


def test_the_secret_is_on_no_command_line_and_in_no_environment() -> None:
    job = launch(*HOSTS, *mpi(LOOKS_FOR_SECRET))
    assert job.stdout.split() == ["64"] * 4, job.stderr


def test_an_agent_that_fails_on_another_host_is_told_with_its_words() -> None:
    job = launch(*CHAIN, "--launch-agent", AGENT.format("echo no way >&2; exit 5"), "--host", "a:1,b:1,c:1", "true")
    assert job.process.returncode == 1
    assert "host c: no way" in job.stderr
    assert re.search(r"host c: no proxy there: sh .* exited with code 5, on host b \(--mca ompyrun_fan_out 0: ", job.stderr)


def test_a_component_that_can_t_serve_on_another_host_is_told(tmp_path: Path) -> None:
    # Whatever is found here is not found where the agent takes it away.
    agent = tmp_path / "agent"
    agent.write_text(f'#!/bin/sh\n[ $1 = a ] && rm {agent}\nexec sh -c "$2"\n')
    agent.chmod(0o755)
    job = launch(*CHAIN, "--launch-agent", str(agent), "--host", "a:1,b:1", "true")
    assert job.process.returncode == 1
    assert "host b: no proxy there: no plm component can serve" in job.stderr
    assert f"there is no command '{agent}' here" in job.stderr


@pytest.mark.long
def test_a_proxy_that_never_calls_another_one_is_told_after_the_limit() -> None:
    words = ("--launch-agent", AGENT.format("sleep 600"), "--mca", "ompyrun_start_timeout", "15", "--host", "a:1,b:1,c:1")
    with Launch(*CHAIN, *words, "true") as job:
        assert job.finish(90) == 1
        assert "host c: no proxy has called back within 15 s" in job.stderr
        assert "it was to call a proxy that has" in job.stderr
        assert job.wait_until_gone(15) == []


@pytest.mark.long
def test_beyond_so_many_hosts_proxies_start_proxies() -> None:
    hosts = ",".join(f"n{number}" for number in range(40))
    with Launch(*LOCAL, "--host", hosts, "sh", "-c", "echo $PMI_RANK of $PMI_SIZE") as job:
        assert job.finish(120) == 0, job.stderr
    assert sorted(job.stdout.splitlines()) == sorted(f"{rank} of 40" for rank in range(40))
