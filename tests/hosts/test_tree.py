"""Hosts that are reached through others: n1 has the launcher, and the proxy of n3 starts that of n4, by ssh from there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from failures import WAYS, fail
from machines import Machines, Start

pytestmark = pytest.mark.long

HOSTS = ("--mca", "ompyrun_fan_out", "2", "--host", "n1:2,n2:2,n3:2,n4:2")
HEAD = "import os, signal, sys, time\nfrom ompy import MPI\ncomm = MPI.COMM_WORLD\nrank = comm.Get_rank()\n"
# Seconds after which something is wrong, on any machine.
MOST = 90.0


def mpi(source: str) -> tuple[str, ...]:
    return (sys.executable, "-c", HEAD + source)


@pytest.mark.parametrize("way", WAYS)
def test_the_job_ends_says_who_it_was_and_leaves_nothing(machines: Machines, tmp_path: Path, way: str) -> None:
    do, words = WAYS[way]
    _, _, problem = fail(machines, tmp_path, do, words, MOST)
    assert not problem


def test_n4_is_reached_through_n3(machines: Machines, ompyrun: Start) -> None:
    source = "print(rank, MPI.Get_processor_name(), comm.allreduce(rank), flush=True)\nsys.stdin.readline()"
    with ompyrun(*HOSTS, *mpi(source), stdin="go\n") as job:
        assert sorted(job.line() for _ in range(8)) == [f"{rank} n{1 + rank // 2} 28\n" for rank in range(8)]
        agents = {
            name: [line for line in machines[name].processes().values() if line.startswith("ssh ")] for name in ("n1", "n3")
        }
        assert [len(lines) for lines in agents.values()] == [2, 1]
        assert " n4 " in agents["n3"][0]
        assert job.finish() == 0, job.stderr


def test_output_input_and_exit_code_of_n4(ompyrun: Start, tmp_path: Path) -> None:
    text = "line\n" * 100_000
    source = "print(os.getcwd(), len(sys.stdin.read()))\nprint('x' * 1_000_000)\ncomm.Barrier()\nif rank == 7: sys.exit(7)"
    with ompyrun(*HOSTS, "-l", "--stdin", "7", *mpi(source), stdin=text) as job:
        assert job.finish(90) == 7, job.stderr
    long = {f"[{rank}] {'x' * 1_000_000}" for rank in range(8)}
    assert set(job.stdout.splitlines()) == {f"[{rank}] {tmp_path} {len(text) * (rank == 7)}" for rank in range(8)} | long
    assert "rank 7 (n4, " in job.stderr


def test_who_waits_for_whom_on_n4(ompyrun: Start) -> None:
    source = "comm.Barrier()\nif rank in (2, 7): comm.Ssend(bytearray(8), dest=9 - rank, tag=7)"
    words = ("--timeout", "8", "--report-state-on-timeout", "--get-stack-traces")
    with ompyrun(*HOSTS, *words, *mpi(source)) as job:
        assert job.finish(90) == 124, job.stderr
    assert "cycle of waits: rank 2 waits for rank 7 in Ssend; rank 7 waits for rank 2 in Ssend" in job.stderr
    assert job.stderr.count('File "<string>", line 6') == 2


def test_a_host_that_n3_can_not_reach_is_told_with_what_ssh_says(ompyrun: Start) -> None:
    words = ("--mca", "ompyrun_fan_out", "1", "--host", "n3:1,nowhere:1")
    with ompyrun(*words, "true") as job:
        assert job.finish(90) == 1
    assert "Could not resolve hostname" in job.stderr
    assert "host nowhere: no proxy there: ssh" in job.stderr
    assert "on host n3" in job.stderr


def test_a_launcher_that_is_stopped_for_longer_than_silence_lasts_goes_on(ompyrun: Start, tmp_path: Path) -> None:
    over = tmp_path / "over"
    source = f"print('up', flush=True)\nwhile not os.path.exists({str(over)!r}): time.sleep(0.1)\ncomm.Barrier()"
    with ompyrun(*HOSTS, "--mca", "ompyrun_host_silence", "4", *mpi(source)) as job:
        assert [job.line() for _ in range(8)] == ["up\n"] * 8
        os.kill(job.pid, signal.SIGTSTP)
        with pytest.raises(subprocess.TimeoutExpired):
            job.process.wait(8)
        # nsenter stops when its child does, and hands this on.
        os.kill(job.process.pid, signal.SIGCONT)
        over.touch()
        assert job.finish(90) == 0, job.stderr
