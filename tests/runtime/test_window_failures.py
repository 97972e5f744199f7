"""A rank is killed while others wait for it in a window: they are told soon, and who it was."""

from __future__ import annotations

import re

import pytest
from launching import launch, mpi

# The launcher would end the job at once: it is stopped until the others have seen for themselves.
PROGRAM = """
win = MPI.Win.Allocate(1 << 20, 8, comm=comm)
group = win.group.Incl([1 - rank])
if rank == 1:
    {before}
    os.kill(os.getppid(), signal.SIGSTOP)
    comm.Send(b"x", 0)
    os.kill(os.getpid(), signal.SIGKILL)
comm.Recv(bytearray(1), 1)
try:
    {wait}
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_PROC_FAILED
    print(error, flush=True)
{after}
os.kill(os.getppid(), signal.SIGCONT)
"""
PLACES = {
    "a lock": ("win.Lock(0)", "win.Lock(0)", "win.Lock(1); win.Unlock(1)"),
    "a shared lock": ("win.Lock_all()", "win.Lock(1)", ""),
    "all locks": ("win.Lock(0)", "win.Lock_all()", "win.Lock(1); win.Unlock(1)"),
    "a fence": ("win.Fence", "win.Fence()", ""),
    "an exposure": ("win.Start", "win.Post(group); win.Wait()", ""),
    "an access": ("win.Post", "win.Start(group)", ""),
    "the end": ("win.Fence", "win.Free()", ""),
}


@pytest.mark.parametrize("place", PLACES)
def test_the_dead_are_named(place: str) -> None:
    before, wait, after = PLACES[place]
    source = PROGRAM.format(before=before, wait=wait, after=after)
    job = launch("-n", "2", "--timeout", "20", *mpi(source))
    assert re.search(r"rank 1 of the window \(process \d+\) has died", job.stdout), job.stdout + job.stderr
    assert "killed by SIGKILL" in job.stderr
