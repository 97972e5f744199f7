"""Memory in the shared heap is memory like any other, and large messages from it arrive whole, whoever copies them."""

from __future__ import annotations

import mmap
import random

import numpy as np
import pytest
from late_signals import until_late

SIZES = (16384, 65537, 131072, 131073, 1 << 20, 3_000_001)
LIMITS = {"pml_ob1_use_get": "1", "btl_sm_eager_limit": "65600", "btl_sm_min_rdma_pipeline_size": "65536"}
HEAP = {"btl": "self,sm", "btl_sm_backing": "auto", "btl_sm_shared_heap": "auto", "btl_sm_single_copy": "none", **LIMITS}
WAYS = {
    "joint": {**HEAP, "btl_sm_joint_copy": "65537"},
    "receiver": {**HEAP, "btl_sm_joint_copy": "0"},
    "kernel": {"btl_sm_shared_heap": "none", "btl_sm_single_copy": "cma", "btl_sm_joint_copy": "65537"},
    "ring": {"btl_sm_shared_heap": "none", "btl_sm_single_copy": "none"},
}


def bytes_in_heap():
    from ompy.core import heap

    return heap.counters()["used"]


def exchange(make, sizes=SIZES):
    """Both ranks send to each other at once, from and to memory that `make` gives."""
    from ompy import MPI

    comm = MPI.COMM_WORLD
    rank, other = comm.rank, 1 - comm.rank
    for size in sizes:
        out, into = make(size), make(size)
        for turn in range(4):
            pattern = np.random.default_rng([size, turn, rank]).integers(0, 256, size, np.uint8)
            expected = np.random.default_rng([size, turn, other]).integers(0, 256, size, np.uint8)
            out[:] = pattern
            into[:] = 0
            MPI.Request.Waitall([comm.Irecv(into, other), comm.Isend(out, other)])
            assert (into == expected).all(), f"{size} bytes, turn {turn}"
            assert (out == pattern).all()


def in_heap(size):
    from ompy import MPI

    return np.frombuffer(MPI.Alloc_mem(size), np.uint8)


def rank():
    from ompy import MPI

    return MPI.COMM_WORLD.rank


def send_one_way(memory):
    """From rank 0 to rank 1, by blocking calls."""
    from ompy import MPI

    if rank() == 0:
        MPI.COMM_WORLD.Send(memory, 1)
    else:
        MPI.COMM_WORLD.Recv(memory, 0)


def exchange_both():
    exchange(in_heap)
    exchange(lambda size: np.empty(size, np.uint8))


@pytest.mark.ompy(2, mca=WAYS["joint"])
def test_messages_arrive_whole_when_both_sides_copy():
    exchange_both()


@pytest.mark.ompy(2, mca=WAYS["receiver"])
def test_messages_arrive_whole_when_the_receiver_copies():
    exchange_both()


@pytest.mark.ompy(2, mca=WAYS["kernel"])
def test_messages_arrive_whole_when_the_kernel_copies_for_both_sides():
    exchange_both()


@pytest.mark.ompy(2, mca=WAYS["ring"])
def test_messages_arrive_whole_through_the_ring_alone():
    exchange_both()


@pytest.mark.ompy(2, mca={**WAYS["receiver"], "mpi_numpy_heap": "0"})
def test_from_64_kib_on_the_heap_is_read_in_place_though_the_message_may_be_sent_before_it_is_matched():
    def copied():
        return sm_statistics()["bytes_copied_in_heap"]

    exchange(in_heap, (65535,))
    exchange(lambda size: np.empty(size, np.uint8), (65536,))
    assert copied() == 0
    exchange(in_heap, (65536,))
    assert copied() == 4 * 65536
    send_one_way(in_heap(65536))
    assert copied() == (4 + rank()) * 65536


@pytest.mark.ompy(2, mca={**HEAP, "mpi_numpy_heap": "0"})
def test_large_messages_between_heaps_do_not_go_through_the_ring():
    from ompy import MPI

    comm = MPI.COMM_WORLD
    memory = in_heap(4 << 20)
    assert bytes_in_heap() >= 4 << 20
    comm.Barrier()
    before = sm_statistics()
    send_one_way(memory)
    if comm.rank == 1:
        after = sm_statistics()
        assert after["bytes_copied_in_heap"] - before["bytes_copied_in_heap"] == 4 << 20
        assert after["bytes_received"] - before["bytes_received"] < 65536


def sm_statistics():
    from ompy.mca.pml import chosen

    (btl,) = [btl for btl in chosen().bml.btls if btl.name == "sm"]
    return btl.statistics()


@pytest.mark.ompy(2, mca={**HEAP, "mpi_numpy_heap": "65536"})
def test_numpy_arrays_live_in_the_heap_and_behave_like_arrays():
    from ompy import MPI

    assert MPI.Is_initialized()
    before = bytes_in_heap()
    small, large = np.ones(100), np.ones(100_000)
    assert bytes_in_heap() - before >= large.nbytes
    assert small.sum() == 100
    assert large.sum() == 100_000
    zeros = np.zeros(50_000)
    assert not zeros.any()
    zeros[:] = 7
    del zeros
    assert not np.zeros(50_000).any(), "memory that is used again is zeroed again"
    grown = np.arange(20_000)
    grown.resize(200_000, refcheck=False)
    assert (grown[:20_000] == np.arange(20_000)).all()
    assert not grown[20_000:].any()
    grown.resize(10, refcheck=False)
    assert (grown == np.arange(10)).all()
    exchange(lambda size: np.empty(size, np.uint8), (1 << 20,))
    del small, large, grown
    assert bytes_in_heap() == before


@pytest.mark.ompy(2, mca={**HEAP, "mpi_numpy_heap": "0"})
def test_blocks_never_overlap_and_come_back():
    from ompy import MPI

    seed = random.randrange(1 << 32)
    print("seed", seed)
    source = random.Random(seed)
    start = bytes_in_heap()
    blocks = {}
    for number in range(400):
        if blocks and source.random() < 0.5:
            key = source.choice(list(blocks))
            memory, array = blocks.pop(key)
            assert (array == key % 251).all()
            del array
            MPI.Free_mem(memory)
        memory = MPI.Alloc_mem(int(2 ** source.uniform(14, 20)))
        array = np.frombuffer(memory, np.uint8)
        array[:] = number % 251
        blocks[number] = (memory, array)
    for key, (memory, array) in blocks.items():
        assert (array == key % 251).all()
        del array
        MPI.Free_mem(memory)
    assert bytes_in_heap() == start


@pytest.mark.ompy(2, mca={**HEAP, "mpi_numpy_heap": "0"})
def test_window_memory_is_zero_even_where_it_was_used_before():
    from ompy import MPI

    memory = MPI.Alloc_mem(1 << 16)
    np.frombuffer(memory, np.uint8)[:] = 255
    MPI.Free_mem(memory)
    window = MPI.Win.Allocate(1 << 16, comm=MPI.COMM_WORLD)
    assert not np.frombuffer(window.tomemory(), np.uint8).any()
    window.Free()


@pytest.mark.ompy(2, mca={"btl": "self,sm", "btl_sm_single_copy": "cma", "btl_sm_joint_copy": "65537", **LIMITS})
def test_a_sender_helps_to_copy_nothing_that_an_interrupted_send_has_given_back(comm):
    comm.sendrecv("both rings are there", 1 - comm.rank)
    expected = np.random.default_rng(7).integers(0, 256, 4 << 20, np.uint8)
    for turn in range(8):  # it may be too late to help
        if comm.rank == 0:
            memory = mmap.mmap(-1, expected.size)
            memory[:] = expected.tobytes()
            until_late(lambda memory=memory: comm.Send(memory, 1), seconds=0.03)
            memory.resize(1 << 18)  # whoever looks behind that now ends; the receiver has enough to begin with
            comm.send("it was given back", 1, tag=1)
            comm.recv(source=1)
        else:
            into = in_heap(expected.size)
            comm.recv(source=0, tag=1)
            comm.Recv(into, 0, tag=0)
            comm.send("it is here", 0)
            assert (into == expected).all(), turn
