"""Windows that are made and freed, a thousand of each kind over each component: nothing of them is left."""

from __future__ import annotations

import gc
import os
import sys
import time

import numpy as np
import pytest

from ompy import MPI
from ompy.core import heap, progress
from ompy.mca import selection

pytestmark = pytest.mark.long

FLAVORS = ("create", "allocate", "shared", "dynamic")
TIMES = 1000
PAGE = os.sysconf("SC_PAGE_SIZE")
# Less than one of the interpreter's blocks a window (its caches fill meanwhile), and half a KiB.
BLOCKS = 3 * TIMES // 4
BYTES = 512 * TIMES


def use(comm, flavor, component):
    """A window's life; its memory too is made and freed."""
    other = 1 - comm.rank
    memory, place = np.zeros(64), 0
    if flavor == "create":
        win = MPI.Win.Create(memory, 8, comm=comm)
    elif flavor == "dynamic":
        win = MPI.Win.Create_dynamic(comm=comm)
        win.Attach(memory)
        place = comm.sendrecv(MPI.Get_address(memory), other)
    else:
        win = (MPI.Win.Allocate if flavor == "allocate" else MPI.Win.Allocate_shared)(512, 8, comm=comm)
        memory = np.frombuffer(win.tomemory())
    win.Fence()
    win.Put(np.full(1, 3.0), other, place)
    win.Fence()
    assert memory[0] == 3
    win.Lock(other)
    win.Accumulate(np.ones(1), other, place + (8 if flavor == "dynamic" else 1))
    win.Unlock(other)
    if flavor == "dynamic":
        comm.Barrier()
        win.Detach(memory)
    win.Free()
    assert next(it for it in selection.verdicts("osc") if it.chosen).component == component


def held():
    """Numbers of descriptors, of mappings of the library's, and of its files in shared memory."""
    with open("/proc/self/maps") as maps:
        ours = sum("ompy" in line for line in maps)
    files = sum(f".{os.getpid()}." in name for name in os.listdir("/dev/shm"))
    return len(os.listdir("/proc/self/fd")), ours, files


def taken():
    """Blocks of the interpreter's, and bytes of memory that is this process's alone."""
    gc.collect()
    with open("/proc/self/status") as lines:
        (kilobytes,) = (line.split()[1] for line in lines if line.startswith("RssAnon"))
    return sys.getallocatedblocks(), 1024 * int(kilobytes)


def sleep_once(comm):
    """The first wait that sleeps makes a doorbell, which the process keeps: three descriptors and a mapping."""
    while not comm.allreduce(progress.counters()["sleeps"], MPI.MIN):
        for late in range(comm.size):
            if comm.rank == late:
                time.sleep(0.02)
            comm.Barrier()


def live(comm, flavor, component):
    sleep_once(comm)
    for _ in range(TIMES // 10):
        use(comm, flavor, component)
    comm.Barrier()
    before, given_out, (blocks, nbytes) = held(), heap.counters()["top"], taken()
    for _ in range(TIMES):
        use(comm, flavor, component)
    comm.Barrier()
    more_blocks, more_bytes = (now - then for now, then in zip(taken(), (blocks, nbytes), strict=True))
    assert all(now <= then for now, then in zip(held(), before, strict=True)), (before, held())
    # A slow rank may still be in the last ones.
    assert heap.counters()["top"] <= given_out + 16 * PAGE
    assert more_blocks < BLOCKS, f"{more_blocks} blocks more after {TIMES} windows"
    assert more_bytes < BYTES, f"{more_bytes} bytes more after {TIMES} windows"


@pytest.mark.ompy(2, mca={"osc": "sm"}, timeout=120)
@pytest.mark.parametrize("flavor", FLAVORS)
def test_nothing_is_left_of_windows_in_shared_memory(comm, flavor):
    live(comm, flavor, "sm")


@pytest.mark.ompy(2, mca={"osc": "rdma"}, timeout=120)
@pytest.mark.parametrize("flavor", FLAVORS)
def test_nothing_is_left_of_windows_over_remote_memory_access(comm, flavor):
    live(comm, flavor, "rdma")


@pytest.mark.ompy(2, mca={"osc": "rdma", "btl": "self,tcp"}, timeout=120)
@pytest.mark.parametrize("flavor", FLAVORS)
def test_nothing_is_left_of_windows_over_active_messages(comm, flavor):
    live(comm, flavor, "rdma")


@pytest.mark.ompy(2, mca={"osc": "pt2pt"}, timeout=120)
@pytest.mark.parametrize("flavor", FLAVORS)
def test_nothing_is_left_of_windows_over_messages(comm, flavor):
    live(comm, flavor, "pt2pt")


@pytest.mark.ompy(2, mca={"osc": "portals"}, timeout=120)
@pytest.mark.parametrize("flavor", FLAVORS)
def test_nothing_is_left_of_windows_on_portals(comm, flavor):
    live(comm, flavor, "portals")


@pytest.mark.ompy(
    2, mca={"osc": "rdma", "pml": "ob1", "btl": "portals,self", "btl_portals_registration_budget": 0}, timeout=120
)
@pytest.mark.parametrize("flavor", FLAVORS)
def test_nothing_is_left_of_windows_over_portals(comm, flavor):
    live(comm, flavor, "rdma")
