"""A rank, a proxy, a link, a launcher goes: the job ends soon, says who it was, and leaves nothing on any host."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from failures import process_of
from machines import Launched, Machines, Start

pytestmark = pytest.mark.long

HOSTS = ("--host", "n1:2,n2:2,n3:1")
SILENCE = 4.0
WAITS = "from ompy import MPI\ncomm = MPI.COMM_WORLD\ncomm.Barrier()\nprint('up', flush=True)\ncomm.recv(source=comm.rank)"
WITHOUT_MPI = "import time\nprint('up', flush=True)\ntime.sleep(600)"
STAYS_UNTIL = """
import os, time
from ompy import MPI
print("up", flush=True)
MPI.COMM_WORLD.Barrier()
while not os.path.exists({!r}):
    time.sleep(0.1)
"""
STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAITS


def kill_rank(machines: Machines, job: Launched) -> None:
    os.kill(process_of(machines, "n3", " -c "), signal.SIGKILL)


def kill_proxy(machines: Machines, job: Launched) -> None:
    os.kill(process_of(machines, "n2", "ompy.runtime.proxy"), signal.SIGKILL)


def cut_link(machines: Machines, job: Launched) -> None:
    machines.cut("n2")


FAILURES: dict[Callable[[Machines, Launched], None], str] = {
    kill_rank: r"rank 4 (n3, ",
    kill_proxy: "host n2 is lost with rank 2, 3: ",
    cut_link: f"host n2 is lost with rank 2, 3: nothing was heard from it for {SILENCE:g} s",
}


@pytest.mark.parametrize("program", [WAITS, WITHOUT_MPI, STUBBORN], ids=["waits", "without MPI", "stubborn"])
@pytest.mark.parametrize("failure", FAILURES, ids=lambda it: it.__name__)
def test_the_job_ends_and_says_who_it_was(
    machines: Machines, ompyrun: Start, failure: Callable[[Machines, Launched], None], program: str
) -> None:
    words = ("--mca", "ompyrun_host_silence", str(SILENCE), "--mca", "ompyrun_grace", "2")
    with ompyrun(*HOSTS, *words, sys.executable, "-c", program) as job:
        try:
            assert [job.line() for _ in range(5)] == ["up\n"] * 5
            failure(machines, job)
            assert job.finish(30) not in (0, None)
            assert FAILURES[failure] in job.stderr, job.stderr
            # Also where nobody reaches it any more.
            assert machines["n2"].wait_until_empty(15) == {}
        finally:
            machines.mend("n2")


@pytest.mark.parametrize("program", [WAITS, WITHOUT_MPI, STUBBORN], ids=["waits", "without MPI", "stubborn"])
def test_a_launcher_that_is_killed_leaves_nothing_on_any_host(machines: Machines, ompyrun: Start, program: str) -> None:
    with ompyrun(*HOSTS, sys.executable, "-c", program) as job:
        assert [job.line() for _ in range(5)] == ["up\n"] * 5
        os.kill(job.pid, signal.SIGKILL)
        assert job.finish(30) != 0
        assert machines.left(10) == {}


def test_a_launcher_whose_host_is_cut_off_ends_and_so_do_all_others(machines: Machines, ompyrun: Start) -> None:
    with ompyrun(*HOSTS, "--mca", "ompyrun_host_silence", str(SILENCE), sys.executable, "-c", WAITS) as job:
        try:
            assert [job.line() for _ in range(5)] == ["up\n"] * 5
            machines.cut("n1")
            assert job.finish(30) != 0
            assert machines.left(15) == {}
        finally:
            machines.mend("n1")


def test_a_launcher_that_is_stopped_for_longer_than_silence_lasts_goes_on(
    machines: Machines, ompyrun: Start, tmp_path: Path
) -> None:
    over = tmp_path / "over"
    source = STAYS_UNTIL.format(str(over))
    words = ("--host", "n2:1,n3:1", "--mca", "ompyrun_host_silence", str(SILENCE))
    with ompyrun(*words, sys.executable, "-c", source) as job:
        assert [job.line() for _ in range(2)] == ["up\n"] * 2
        os.kill(job.pid, signal.SIGTSTP)
        with pytest.raises(subprocess.TimeoutExpired):
            job.process.wait(2 * SILENCE)
        # nsenter stops when its child does, and hands this on.
        os.kill(job.process.pid, signal.SIGCONT)
        over.touch()
        assert job.finish(30) == 0, job.stderr


GOES_ON = """
from ompy import MPI
comm = MPI.COMM_WORLD
comm.Set_errhandler(MPI.ERRORS_RETURN)
comm.Barrier()
print("up", flush=True)
lost = {lost}
if comm.rank in lost:
    comm.recv(source=comm.rank)
for rank in lost:
    try:
        comm.recv(source=rank)
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
        assert f"rank {{rank}} " in str(error), error
try:
    comm.Barrier()
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
alive = comm.Create_group(comm.group.Excl(lost))
print("alive", alive.allreduce(1), flush=True)
"""


@pytest.mark.parametrize("failure", FAILURES, ids=lambda it: it.__name__)
def test_a_job_that_recovers_goes_on_without_the_ranks_of_another_host(
    machines: Machines, ompyrun: Start, failure: Callable[[Machines, Launched], None]
) -> None:
    lost = [4] if failure is kill_rank else [2, 3]
    words = ("--enable-recovery", "--mca", "ompyrun_host_silence", str(SILENCE), "--mca", "ompyrun_grace", "2")
    with ompyrun(*HOSTS, *words, sys.executable, "-c", GOES_ON.format(lost=lost)) as job:
        try:
            assert [job.line() for _ in range(5)] == ["up\n"] * 5
            failure(machines, job)
            assert [job.line() for _ in range(5 - len(lost))] == [f"alive {5 - len(lost)}\n"] * (5 - len(lost)), job.stderr
            assert job.finish(30) not in (0, None)
            assert FAILURES[failure] in job.stderr, job.stderr
        finally:
            machines.mend("n2")
