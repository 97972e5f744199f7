"""Wherever source and target of a copy lie within their pages it is whole, and nothing beside it is touched.

On some processors copies go another way where the target lies up to 31 bytes past the source, but for whole pages
(`ompy/core/copying.pxd`).
"""

from __future__ import annotations

import itertools
import mmap

import numpy as np
import pytest

from ompy import MPI

DIFFERENCES = (-1, 0, 1, 16, 31, 32)
SIZES = (2047, 2048, 4096, 5000, 65535, 65536, 65537, 131073, 200001)
PAGE = mmap.PAGESIZE
LARGEST = max(SIZES) + 4 * PAGE
KERNEL = {"osc": "sm", "osc_sm_patience": "0"}
RING = {"btl": "self,sm", "btl_sm_single_copy": "none", "btl_sm_shared_heap": "none"}
BY_KERNEL = {
    "btl": "self,sm",
    "btl_sm_single_copy": "cma",
    "btl_sm_shared_heap": "none",
    "btl_sm_min_rdma_pipeline_size": "2048",
}


def places():
    """Each size at each difference, from a place of its own in the page."""
    for turn, (size, difference) in enumerate(itertools.product(SIZES, DIFFERENCES)):
        yield size, PAGE + 8 * (turn % 7), difference


def pages():
    return np.frombuffer(mmap.mmap(-1, LARGEST), "u1")


def check(memory, begin, expected):
    assert (memory[begin : begin + len(expected)] == expected).all()
    assert not memory[:begin].any()
    assert not memory[begin + len(expected) :].any()


def exchange(comm):
    out, into = pages(), pages()
    for size, begin, difference in places():
        data = np.random.default_rng([size, begin]).integers(1, 256, size, "u1")
        out[:] = into[:] = 0
        out[begin : begin + size] = data
        there = into[begin + difference :][:size]
        MPI.Request.Waitall([comm.Irecv(there, 1 - comm.rank), comm.Isend(out[begin : begin + size], 1 - comm.rank)])
        check(into, begin + difference, data)


@pytest.mark.ompy(2, mca=RING)
def test_messages_through_the_ring(comm):
    exchange(comm)


@pytest.mark.ompy(2, mca=BY_KERNEL)
def test_messages_copied_by_the_kernel(comm):
    exchange(comm)


@pytest.mark.parametrize("flavor", ["create", "allocate"])
@pytest.mark.ompy(2, mca=KERNEL)
def test_puts_and_gets(comm, flavor):
    memory = pages()
    if flavor == "create":
        win = MPI.Win.Create(memory, 1, comm=comm)
    else:
        win = MPI.Win.Allocate(LARGEST, 1, comm=comm)
        memory = np.frombuffer(win.tomemory(), "u1")
    first = (-memory.ctypes.data) % PAGE
    mine = pages()
    for size, begin, difference in places():
        data = np.random.default_rng([size, begin]).integers(1, 256, size, "u1")
        memory[:] = 0
        comm.Barrier()
        if comm.rank == 0:
            mine[:] = 0
            mine[begin : begin + size] = data
            win.Lock(1)
            win.Put(mine[begin : begin + size], 1, first + begin + difference)
            win.Flush(1)
            mine[:] = 0
            win.Get(mine[begin + 2 * difference :][:size], 1, first + begin + difference)
            win.Unlock(1)
            check(mine, begin + 2 * difference, data)
        comm.Barrier()
        if comm.rank == 1:
            check(memory, first + begin + difference, data)
        comm.Barrier()
    win.Free()
