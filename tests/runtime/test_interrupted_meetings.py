"""Spawn, Accept and Connect that a signal handler ends on one rank: every rank of the group hears of it, and goes on."""

from __future__ import annotations

import pytest
from launching import launch, mpi

PROGRAM = """
from ompy import MPI
import numpy as np
class Late(Exception): pass
def raise_late(*_): raise Late
signal.signal(signal.SIGALRM, raise_late)
waits = {
    "spawn": lambda: comm.Spawn(sys.executable, ["-c", "import signal; signal.pause()"], 1),
    "accept": lambda: comm.Accept(MPI.Open_port() if rank == 0 else ""),
}
if rank == WHO:
    signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    waits["WHAT"]()
except (Late, MPI.Exception) as error:
    # A rank that does not wait by itself is told by the one that does.
    said = type(error).__name__ if rank == WHO else "Late" in str(error)
    print(rank, said, flush=True)
total = np.zeros(1)
comm.Allreduce(np.ones(1), total)
assert total[0] == 2
assert comm.bcast(rank, 1) == 1
print("after", flush=True)
"""


@pytest.mark.parametrize("what", ["spawn", "accept"])
def test_the_root_that_is_interrupted_tells_its_group(what: str) -> None:
    job = launch(
        "-n", "2", "--timeout", "40", "--report-state-on-timeout", *mpi(PROGRAM.replace("WHAT", what).replace("WHO", "0"))
    )
    assert job.process.returncode == 0, job.stderr
    assert sorted(job.stdout.splitlines()) == ["0 Late", "1 True", "after", "after"], job.stderr


def test_no_program_to_spawn_is_an_error_on_every_rank() -> None:
    body = (
        "try: comm.Spawn_multiple([], [], [])\n"
        "except MPI.Exception as error: print(error.Get_error_class() == MPI.ERR_ARG)\ncomm.Barrier()\n"
    )
    job = launch("-n", "2", "--timeout", "40", *mpi(body))
    assert (job.process.returncode, job.stdout) == (0, "True\nTrue\n"), job.stderr


def test_a_root_that_is_interrupted_before_all_have_come_does_not_begin_to_wait() -> None:
    body = """
class Late(Exception): pass
def raise_late(*_):
    comm.send(None, 1)
    raise Late
port = MPI.Open_port() if rank == 0 else ""
if rank == 0:
    signal.signal(signal.SIGALRM, raise_late)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
else:
    comm.recv(source=0)
try:
    comm.Accept(port)
except (Late, MPI.Exception) as error:
    print(rank, type(error).__name__ if rank == 0 else "Late" in str(error), flush=True)
assert comm.allgather(rank) == [0, 1]
"""
    job = launch("-n", "2", "--timeout", "40", "--report-state-on-timeout", *mpi(body))
    assert (job.process.returncode, sorted(job.stdout.splitlines())) == (0, ["0 Late", "1 True"]), job.stderr


def test_an_idup_whose_leader_knows_of_a_failure_ends_in_all_of_the_group() -> None:
    body = """
part = comm.Split(rank // 2, rank)
between = part.Create_intercomm(0, comm, 2 if rank < 2 else 0, 5)
if rank == 2: os._exit(3)
if rank == 0:
    try: between.recv(source=0)
    except MPI.Exception: comm.send(None, 1)
else:
    comm.recv(source=0)
try:
    made, request = between.Idup()
    request.Wait()
except MPI.Exception as error:
    print(rank, "heard", flush=True)
if rank == 0: comm.recv(source=1)
else: comm.send(None, 0)
os._exit(0)
"""
    job = launch("--enable-recovery", "-n", "3", "--timeout", "40", "--report-state-on-timeout", *mpi(body))
    assert sorted(job.stdout.splitlines()) == ["0 heard", "1 heard"], (job.stdout, job.stderr)
