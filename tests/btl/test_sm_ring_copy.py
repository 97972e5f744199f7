"""However payloads are written into the ring they arrive whole, and the quicker way is found on the way."""

from __future__ import annotations

import random
import re

import pytest

RING = {
    "btl": "self,sm",
    "btl_sm_single_copy": "none",
    "btl_sm_shared_heap": "none",
    "mpi_numpy_heap": "0",
    "btl_sm_eager_limit": "65600",
}
# The lengths at which the copy changes, and those of whole lines and of nothing but ragged ends.
EDGES = (1, 24, 32, 63, 64, 65, 767, 768, 769, 831, 832, 1023, 1024, 1025, 1536, 1537, 4096, 32767, 32768, 32769, 65536)


def exchange(sizes):
    """Each rank sends to the other from an odd address and receives at another; nothing around it is touched."""
    import numpy as np

    from ompy import MPI

    comm = MPI.COMM_WORLD
    other = 1 - comm.rank
    for turn, size in enumerate(sizes):
        memory, room = np.zeros(size + 128, np.uint8), np.zeros(size + 128, np.uint8)
        out, into = turn % 67, (turn * 5) % 61
        memory[out : out + size] = np.random.default_rng([turn, comm.rank]).integers(1, 256, size, np.uint8)
        expected = np.random.default_rng([turn, other]).integers(1, 256, size, np.uint8)
        receiving = comm.Irecv(room[into : into + size], other)
        comm.Send(memory[out : out + size], other)
        receiving.Wait()
        assert (room[into : into + size] == expected).all(), f"{size} bytes, turn {turn}"
        assert not room[:into].any()
        assert not room[into + size :].any()


def edges_and_others():
    seed = 20261120
    print("seed", seed)
    sizes = random.Random(seed)
    return [*EDGES * 4, *(int(2 ** sizes.uniform(0, 21)) for _ in range(150))]


def transport():
    from ompy.mca.pml import chosen

    (btl,) = [btl for btl in chosen().bml.btls if btl.name == "sm"]
    return btl


def statistics():
    return transport().statistics()


@pytest.mark.ompy(2, mca={**RING, "btl_sm_ring_copy": "cached"})
def test_payloads_written_by_ordinary_stores_arrive_whole():
    exchange(edges_and_others())
    assert statistics()["bytes_streamed"] == 0


@pytest.mark.ompy(2, mca={**RING, "btl_sm_ring_copy": "streaming"})
def test_payloads_written_past_the_caches_arrive_whole():
    exchange([size for size in EDGES if size < 32768])
    assert statistics()["bytes_streamed"] == 0
    exchange([32768])
    assert statistics()["bytes_streamed"] == 32768
    exchange(edges_and_others())
    assert statistics()["streams_out"] == 1


@pytest.mark.ompy(2, mca={**RING, "btl_sm_ring_copy": "auto"})
def test_long_payloads_go_both_ways_again_and_again_and_the_quicker_one_is_told():
    exchange([1])
    told, streamed = [], []
    transport().on_choice = told.append
    for _ in range(3):
        before = statistics()
        exchange([65536] * 128)
        streamed.append((statistics()["bytes_streamed"] - before["bytes_streamed"]) // 65536)
    assert all(0 < number < 128 for number in streamed), streamed
    assert told
    for line in told:
        took = re.search(r"writer's part takes (\d+) us by ordinary stores, (\d+) us past the caches", line)
        assert took
        assert all(int(number) > 0 for number in took.groups())
    assert ("the ring past the caches" in told[-1]) == statistics()["streams_out"]
