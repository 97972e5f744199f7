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
