"""MPI over btl/udp, with and without datagrams lost on the way."""

from __future__ import annotations

import pytest

OWN = {"btl": "udp,self"}
LOSSY = OWN | {"btl_udp_drop": 0.1, "btl_udp_seed": 7}
SIZES = (0, 1, 100, 8191, 8192, 32768, 65536, 65537, 300_001)


def exchange(comm, ompy_rng, sizes):
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for size in sizes:
        sent = ompy_rng.randbytes(size)
        got = bytearray(size)
        comm.Sendrecv(bytearray(sent), right, 3, got, left, 3)
        assert got == sent, size


@pytest.mark.ompy(2, 3, mca=OWN)
def test_every_size_arrives_as_it_was_sent(comm, ompy_rng):
    exchange(comm, ompy_rng, SIZES)


@pytest.mark.ompy(2, mca=LOSSY)
def test_what_is_lost_is_sent_again(comm, ompy_rng):
    exchange(comm, ompy_rng, SIZES)
    from ompy.mca.selection import chosen_modules

    [udp] = [btl for btl in chosen_modules["btl"] if btl.name == "udp"]
    told = udp.statistics()
    assert told["dropped on purpose"] > 0
    assert told["datagrams resent"] > 0
    assert comm.allreduce(comm.rank) == 1


@pytest.mark.ompy(3, mca=LOSSY)
def test_a_flood_to_one_rank_arrives_in_order(comm):
    if comm.rank:
        for send in [comm.isend((comm.rank, number), 0) for number in range(100)]:
            send.wait()
    else:
        got = [comm.recv() for _ in range(100 * (comm.size - 1))]
        for rank in range(1, comm.size):
            assert [number for source, number in got if source == rank] == list(range(100))


@pytest.mark.ompy(2, mca=OWN | {"btl_udp_datagram_size": 500, "btl_udp_window": 4})
def test_a_small_window_and_small_datagrams_will_do(comm, ompy_rng):
    exchange(comm, ompy_rng, (0, 1, 447, 448, 449, 5000, 70_000))


@pytest.mark.ompy(2, mca=OWN)
def test_datagrams_of_strangers_are_counted_and_dropped(comm):
    import socket

    from ompy.mca.selection import chosen_modules

    [udp] = [btl for btl in chosen_modules["btl"] if btl.name == "udp"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for size in (0, 10, 52, 1000):
            stranger.sendto(bytes(size), udp.socket.getsockname())
    while udp.statistics()["datagrams of others"] < 4:
        comm.iprobe()
    assert comm.sendrecv(comm.rank, 1 - comm.rank) == 1 - comm.rank


def test_it_keeps_the_contract(ompy_conformance):
    ompy_conformance("btl", "udp,self", 2)
