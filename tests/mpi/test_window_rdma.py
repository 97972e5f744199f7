"""Windows over put, get and atomics of BTLs, and of the layer over their messages."""

from __future__ import annotations

import numpy as np
import pytest
from accessing import accesses, accumulate_pairs, move_spread_elements
from attaching import attach_at_random
from ompy_btl_zmq.module import ZmqBtl

from ompy import MPI

RDMA = {"osc": "rdma"}
WAYS = {
    "the heap": RDMA,
    "heap and kernel": {**RDMA, "btl_sm_single_copy": "cma"},
    "messages": {**RDMA, "osc_rdma_native": "none"},
    "messages of a few bytes": {**RDMA, "osc_rdma_native": "none", "btl_sm_max_send_size": 256, "btl_sm_eager_limit": 256},
    "zmq": {**RDMA, "btl": "zmq,self"},
    "portals": {**RDMA, "pml": "ob1", "btl": "portals,self"},
}


@pytest.mark.ompy(2, 3, mca=WAYS["the heap"])
def test_over_the_heap(comm, ompy_seed):
    accesses(comm, "rdma")
    attach_at_random(comm, ompy_seed)


@pytest.mark.ompy(1, 2, mca=WAYS["heap and kernel"])
def test_pairs_accumulate(comm):
    accumulate_pairs(comm)


@pytest.mark.ompy(2, 3, mca=WAYS["heap and kernel"])
def test_over_heap_and_kernel(comm, ompy_seed):
    accesses(comm, "rdma")
    attach_at_random(comm, ompy_seed)


@pytest.mark.ompy(2, 3, mca=WAYS["messages"])
def test_over_messages(comm, ompy_seed):
    accesses(comm, "rdma")
    attach_at_random(comm, ompy_seed)


@pytest.mark.ompy(2, 3, mca=WAYS["messages of a few bytes"])
def test_over_short_messages(comm, ompy_seed):
    accesses(comm, "rdma")
    attach_at_random(comm, ompy_seed)


@pytest.mark.ompy(2, 3, mca=WAYS["zmq"])
def test_over_zmq(comm, ompy_seed):
    accesses(comm, "rdma")
    attach_at_random(comm, ompy_seed)


@pytest.mark.ompy(2, 3, mca=WAYS["portals"])
def test_over_portals(comm, ompy_seed):
    accesses(comm, "rdma")
    attach_at_random(comm, ompy_seed)


@pytest.mark.ompy(2, mca={**WAYS["portals"], "btl_portals_regions": "16"})
def test_memory_that_one_rank_cant_register_is_reached_by_messages(comm):
    memory = [np.full(1 << 14, float(number)) for number in range(400)]
    sends = [comm.Isend(data, 1, number) for number, data in enumerate(memory)] if comm.rank == 0 else []
    win = MPI.Win.Allocate(8, 8, comm=comm)
    win.Fence()
    if comm.rank == 1:
        win.Put(np.full(1, 5.0), 0)
    win.Fence()
    assert np.frombuffer(win.tomemory())[0] == (5 if comm.rank == 0 else 0)
    if comm.rank == 1:
        for number, data in enumerate(memory):
            data[:] = -1
            comm.Recv(data, 0, number)
            assert (data == number).all()
    MPI.Request.Waitall(sends)
    win.Free()


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


@pytest.mark.ompy(2, mca=WAYS["messages"])
def test_elements_that_do_not_lie_together_are_moved_by_messages(comm, ompy_seed):
    move_spread_elements(comm, ompy_seed)


@pytest.mark.ompy(2, mca=WAYS["messages of a few bytes"])
def test_elements_that_do_not_lie_together_are_moved_by_messages_of_a_few_bytes(comm, ompy_seed):
    move_spread_elements(comm, ompy_seed)


@pytest.mark.ompy(2, mca=WAYS["zmq"])
def test_accesses_of_many_elements_take_a_few_messages(comm, monkeypatch):
    """An accumulate is of three: its turn, what is there, and what is to be there; then its turn is another's."""
    sent = []
    send = ZmqBtl.send

    def counted(btl, endpoint, descriptor, tag):
        sent.append(tag)
        return send(btl, endpoint, descriptor, tag)

    spread = MPI.DOUBLE.Create_vector(100, 1, 2).Commit()
    win = MPI.Win.Allocate(8 * 200, 8, comm=comm)
    if comm.rank == 0:
        data = np.arange(100.0)
        win.Lock(1)
        win.Get(data.copy(), 1)  # makes contact
        win.Flush(1)
        monkeypatch.setattr(ZmqBtl, "send", counted)
        for there in (None, (0, 1, spread)):
            for access, messages in ((win.Put, 1), (win.Get, 1), (win.Accumulate, 4)):
                sent.clear()
                access(data, 1, there)
                win.Flush(1)
                assert len(sent) == messages, access
        win.Unlock(1)
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
