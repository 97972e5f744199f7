"""Windows over memory of which the owner protects a page: long copies by the kernel stop there, from either end."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest

from ompy import MPI

PAGE = mmap.PAGESIZE
LENGTH = 300 * PAGE + 123  # in several pieces, the last one ragged
LIBC = ctypes.CDLL(None, use_errno=True)
# The first page, one within the first and one within the last pieces of either direction, the last page.
GUARDED = (0, 20, 150, 290, 300)


def protect(memory: np.ndarray, page: int, protection: int) -> None:
    assert LIBC.mprotect(ctypes.c_void_p(memory.ctypes.data + page * PAGE), PAGE, protection) == 0, ctypes.get_errno()


def content(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, LENGTH, "u1")


@pytest.mark.ompy(2, mca={"osc": "sm", "osc_sm_patience": "0"}, timeout=60)
@pytest.mark.parametrize("page", GUARDED)
def test_a_copy_that_meets_a_protected_page_fails_and_the_next_ones_are_whole(comm, page: int, ompy_seed: int) -> None:
    memory = np.frombuffer(mmap.mmap(-1, LENGTH + PAGE), "u1")[:LENGTH]
    win = MPI.Win.Create(memory, 1, comm=comm)
    win.Set_errhandler(MPI.ERRORS_RETURN)
    fresh, got = content(ompy_seed), np.zeros(LENGTH, "u1")
    win.Lock_all()
    for turn in range(4):  # each direction, twice
        if comm.rank == 1:
            protect(memory, page, 0)
        comm.Barrier()
        if comm.rank == 0:
            for access, what in ((win.Put, "written"), (win.Get, "read")):
                with pytest.raises(MPI.Exception, match=f"of rank 1 .* can't be {what}"):
                    access(got, 1)
        comm.Barrier()
        if comm.rank == 1:
            protect(memory, page, mmap.PROT_READ | mmap.PROT_WRITE)
        comm.Barrier()
        if comm.rank == 0:
            fresh = np.roll(fresh, turn + 1)
            for _ in range(3):  # an odd number, so that puts and gets change their direction
                win.Put(fresh, 1)
                win.Flush(1)
                got[:] = 0
                win.Get(got, 1)
                win.Flush(1)
                assert np.array_equal(got, fresh)
                win.Get(got, 1)
                win.Flush(1)
        comm.Barrier()
    win.Unlock_all()
    win.Free()
