"""Windows over put, get and atomics of BTLs, and of the layer over their messages."""

from __future__ import annotations

import numpy as np
import pytest
from attaching import attach_at_random

from ompy import MPI
from ompy.mca import selection

RDMA = {"osc": "rdma"}
WAYS = {
    "the heap": RDMA,
    "heap and kernel": {**RDMA, "btl_sm_single_copy": "cma"},
    "messages": {**RDMA, "osc_rdma_native": "none"},
    "messages of a few bytes": {**RDMA, "osc_rdma_native": "none", "btl_sm_max_send_size": 256, "btl_sm_eager_limit": 256},
    "zmq": {**RDMA, "btl": "zmq,self"},
    "portals": {**RDMA, "pml": "ob1", "btl": "portals,self"},
}


def made(flavor, comm, count):
    if flavor == "create":
        memory = np.zeros(count)
        return MPI.Win.Create(memory, 8, comm=comm), memory
    win = (MPI.Win.Allocate if flavor == "allocate" else MPI.Win.Allocate_shared)(8 * count, 8, comm=comm)
    return win, np.frombuffer(win.tomemory())


def accesses(comm):
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for flavor in ("allocate", "create", "shared"):
        win, memory = made(flavor, comm, 20000)
        assert next(it for it in selection.verdicts("osc") if it.chosen).component == "rdma"
        spread = MPI.DOUBLE.Create_vector(5, 1, 2).Commit()
        win.Fence()
        win.Put(np.full(10000, comm.rank + 1.0), right, 5)
        win.Fence()
        assert (memory[5:10005] == left + 1).all()
        got = np.zeros(10000)
        win.Get(got, right, 5)
        win.Put(np.arange(5.0), right, (15000, 1, spread))
        win.Fence()
        assert (got == comm.rank + 1).all()
        assert memory[15000:15010].tolist() == [0, 0, 1, 0, 2, 0, 3, 0, 4, 0]
        win.Lock_all()
        for _ in range(20):
            win.Accumulate(np.ones(10), 0)
            win.Accumulate(np.ones(5), 0, (0, 1, spread))
        win.Unlock_all()
        comm.Barrier()
        if comm.rank == 0:
            assert memory[:5].tolist() == [40.0 * comm.size, 20.0 * comm.size] * 2 + [40.0 * comm.size]
        one = np.zeros(1)
        for _ in range(10):
            win.Lock(0)
            win.Get(one, 0, 19000)
            win.Flush(0)
            one += 1
            win.Put(one, 0, 19000)
            win.Unlock(0)
        comm.Barrier()
        if comm.rank == 0:
            assert memory[19000] == 10 * comm.size
        others = comm.Get_group().Excl([comm.rank])
        win.Post(others)
        win.Start(others)
        for rank in range(comm.size):
            if rank != comm.rank:
                win.Put(np.full(1, 7.0), rank, 19100 + comm.rank)
        win.Complete()
        win.Wait()
        assert memory[19100 : 19100 + comm.size].sum() == 7 * (comm.size - 1)
        win.Free()
        spread.Free()


@pytest.mark.ompy(2, 3, mca=WAYS["the heap"])
def test_over_the_heap(comm, ompy_seed):
    accesses(comm)
    attach_at_random(comm, ompy_seed)


@pytest.mark.ompy(2, 3, mca=WAYS["heap and kernel"])
def test_over_heap_and_kernel(comm, ompy_seed):
    accesses(comm)
    attach_at_random(comm, ompy_seed)


@pytest.mark.ompy(2, 3, mca=WAYS["messages"])
def test_over_messages(comm, ompy_seed):
    accesses(comm)
    attach_at_random(comm, ompy_seed)


@pytest.mark.ompy(2, 3, mca=WAYS["messages of a few bytes"])
def test_over_short_messages(comm, ompy_seed):
    accesses(comm)
    attach_at_random(comm, ompy_seed)


@pytest.mark.ompy(2, 3, mca=WAYS["zmq"])
def test_over_zmq(comm, ompy_seed):
    accesses(comm)
    attach_at_random(comm, ompy_seed)


@pytest.mark.ompy(2, 3, mca=WAYS["portals"])
def test_over_portals(comm, ompy_seed):
    accesses(comm)
    attach_at_random(comm, ompy_seed)


@pytest.mark.ompy(2, mca=RDMA)
def test_memory_that_comes_again_is_not_reached_by_what_was_known_of_it(comm):
    win = MPI.Win.Create_dynamic(comm=comm)
    memory = np.zeros(20)
    there = comm.sendrecv(MPI.Get_address(memory), 1 - comm.rank)
    win.Lock_all()
    for length in (20, 5, 10):
        win.Attach(memory[:length])
        comm.Barrier()
        win.Put(np.full(length, float(length)), 1 - comm.rank, there)
        with pytest.raises(MPI.Exception, match=f"rank {1 - comm.rank} has attached no memory"):
            win.Accumulate(np.ones(length), 1 - comm.rank, there + 8)
        win.Fetch_and_op(np.ones(1), np.zeros(1), 1 - comm.rank, there)
        win.Flush_all()
        comm.Barrier()
        assert memory[:length].tolist() == [length + 1.0, *[float(length)] * (length - 1)]
        win.Detach(memory[:length])
        with pytest.raises(MPI.Exception, match="nothing is attached"):
            win.Detach(memory[:length])
        comm.Barrier()
    win.Unlock_all()
    win.Free()


@pytest.mark.ompy(2, mca={**RDMA, "osc_rdma_native": "none"})
def test_a_window_over_messages_tells_that_its_targets_must_call(comm):
    win = MPI.Win.Allocate(8, comm=comm)
    assert win.Get_info()["ompy_target_progress"] == "calls"
    win.Free()


@pytest.mark.ompy(2, mca=RDMA)
def test_a_window_in_the_heap_needs_nothing_of_its_targets(comm):
    win = MPI.Win.Allocate(8, comm=comm)
    assert win.Get_info()["ompy_target_progress"] == "none"
    win.Free()
