"""Jobs under pml/dr whose connections end at random: what one transport, or link, has lost goes over another."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import stat
from typing import Any

import pytest

MESSAGES = 12_000
WINDOW = 50
SIZES = {0: 100, 1: 100, 8: 400, 100: 300, 4096: 60, 20_000: 20, 100_000: 5, 1 << 20: 1}
PATIENT = {"pml": "dr", "pml_dr_failover_timeout": 60_000}


def end_a_connection(generator: random.Random) -> int:
    """One of this process's to a peer, as a reset would; how many there were, at most one."""
    found = []
    for number in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                with socket.socket(fileno=os.dup(number)) as link:
                    if link.family == socket.AF_INET and link.getpeername():
                        found.append(number)
    with contextlib.suppress(OSError, IndexError), socket.socket(fileno=os.dup(generator.choice(found))) as link:
        link.shutdown(socket.SHUT_RDWR)
        return 1
    return 0


def told(name: str) -> int:
    from ompy.mca import selection

    return int(selection.chosen_modules["pml"][0].statistics()[name])


def exchange_and_break(comm: Any, seed: int) -> None:
    """Messages both ways, checked, during which each rank ends a connection now and then."""
    from ompy import MPI

    peer, status = 1 - comm.rank, MPI.Status()
    common, own = random.Random(seed), random.Random(seed + comm.rank)
    ended = 0
    for first in range(0, MESSAGES, WINDOW):
        if own.random() < 0.05:
            ended += end_a_connection(own)
        sizes = common.choices(list(SIZES), list(SIZES.values()), k=WINDOW)
        requests = []
        for number, size in enumerate(sizes, first):
            data = (number.to_bytes(8, "little") + bytes([(number + comm.rank) % 251]) * size)[:size]
            requests.append(comm.Isend(data, peer, number % 7))
        for number, size in enumerate(sizes, first):
            room = bytearray(size + 1)
            comm.Recv([room, size + 1, MPI.BYTE], peer, MPI.ANY_TAG, status)
            assert (status.tag, status.Get_count(MPI.BYTE)) == (number % 7, size)
            assert room[:size] == (number.to_bytes(8, "little") + bytes([(number + peer) % 251]) * size)[:size], number
        MPI.Request.Waitall(requests)
    assert comm.allreduce(ended)
    assert comm.allreduce(told("paths_lost"))
    assert not told("peers_lost")


@pytest.mark.ompy(2, mca=PATIENT | {"btl": "zmq,self", "btl_zmq_links": 2}, timeout=90)
def test_what_a_link_of_zmq_loses_goes_over_the_other(comm: Any, seed: int) -> None:
    exchange_and_break(comm, seed)


@pytest.mark.ompy(2, mca=PATIENT | {"btl": "tcp,zmq,self"}, timeout=90)
def test_what_tcp_loses_goes_over_zmq_which_stands_by(comm: Any, seed: int) -> None:
    exchange_and_break(comm, seed)


@pytest.mark.ompy(2, mca=PATIENT | {"btl": "tcp,zmq,self", "btl_tcp_exclusivity": 10}, timeout=90)
def test_what_tcp_or_zmq_loses_goes_over_the_other_where_both_carry(comm: Any, seed: int) -> None:
    exchange_and_break(comm, seed)


@pytest.mark.ompy(2, mca=PATIENT | {"btl": "tcp,self"}, timeout=90)
def test_what_a_lone_connection_loses_goes_over_the_next(comm: Any, seed: int) -> None:
    exchange_and_break(comm, seed)


@pytest.mark.ompy(2, mca={"pml": "dr", "btl": "zmq,self", "btl_zmq_links": 2}, timeout=90)
def test_long_messages_are_shared_out_among_links_of_zmq(comm: Any) -> None:
    from ompy import MPI
    from ompy.mca import selection

    data = [bytes([number]) * (4 << 20) for number in range(4)]
    received = [bytearray(4 << 20) for _ in data]
    requests = [comm.Irecv(room, 1 - comm.rank, 1) for room in received]
    requests += [comm.Isend(some, 1 - comm.rank, 1) for some in data]
    MPI.Request.Waitall(requests)
    assert received == data
    links = [btl for btl in selection.chosen_modules["btl"] if btl.name.startswith("zmq")]
    assert [link.counters["connections made"] for link in links] == [1, 1]
