"""Sessions are independent of MPI.Init and MPI.Finalize (MPI-4.1, 11.1)."""

from __future__ import annotations

import pytest
from launching import launch, python

PROGRAM = """
from ompy import MPI
def over_all(session, tag):
    return MPI.Intracomm.Create_from_group(session.Create_group("mpi://WORLD"), tag)
first = MPI.Session.Init()
comm = over_all(first, "first")
MPI.Finalize()
assert MPI.Is_finalized() and comm.allreduce(1) == 2
try:
    MPI.COMM_WORLD.Barrier()
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_COMM
else:
    raise AssertionError("COMM_WORLD outlives Finalize")
second = MPI.Session.Init()
other = over_all(second, "second")
first.Finalize()
assert other.allgather(other.rank) == [0, 1] == comm.allgather(comm.rank)
comm.Free(), other.Free()
"""
ALL_CLOSED = """
second.Finalize()
try:
    MPI.Session.Init()
except MPI.Exception as error:
    assert "was finalised" in str(error)
else:
    raise AssertionError("a session in a library that has gone")
"""


@pytest.mark.parametrize("end", ["", ALL_CLOSED], ids=["one is open at the exit", "all are closed"])
def test_sessions_that_are_open_go_on_after_finalize(end: str) -> None:
    job = launch("-n", "2", "--timeout", "40", *python(PROGRAM + end))
    assert job.process.returncode == 0, job.stderr
