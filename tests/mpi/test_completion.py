"""What is complete needs no further call: a send has left, and whoever sent what was received has been told."""

from __future__ import annotations

import socket

import numpy as np
import pytest

from ompy import MPI

# What the system's buffers take at once, and what they don't.
LENGTHS = (1 << 10, 1 << 16, (1 << 22) + 2)
ROUNDS = 40


def connections() -> list[socket.socket]:
    """Beside MPI: rank 0's to each other rank, and theirs to it."""
    comm = MPI.COMM_WORLD
    if comm.rank:
        return [socket.create_connection(("127.0.0.1", comm.bcast(None)))]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        comm.bcast(listening.getsockname()[1])
        return [listening.accept()[0] for _ in range(1, comm.size)]


def meet(beside: list[socket.socket]) -> None:
    """All ranks are here, and none has called MPI meanwhile."""
    first = MPI.COMM_WORLD.rank == 0
    for call in ("recv", "send") if first else ("send", "recv"):
        for each in beside:
            assert each.send(b".") if call == "send" else each.recv(1)


@pytest.mark.ompy(3, mca={"btl": "self,tcp"}, timeout=60)
@pytest.mark.parametrize("length", LENGTHS)
def test_a_complete_send_needs_no_further_call_of_its_sender(length: int) -> None:
    comm = MPI.COMM_WORLD
    before, after = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    mine, theirs = np.full(length, comm.rank, "u1"), np.empty(length, "u1")
    beside = connections()
    for _ in range(ROUNDS):
        comm.Sendrecv(mine, after, 0, theirs, before, 0)
        assert (theirs == before).all()
        meet(beside)
    for each in beside:
        each.close()


@pytest.mark.ompy(2, mca={"btl": "self,zmq"}, timeout=60)
def test_a_complete_receive_needs_no_further_call_of_its_receiver() -> None:
    """Contact with the sender is made only then, which takes a while."""
    comm = MPI.COMM_WORLD
    (beside,) = connections()
    data = np.full(10, comm.rank)
    if comm.rank == 0:
        comm.Ssend(data, 1)
        beside.send(b".")
    else:
        comm.Recv(data, 0)
        assert beside.recv(1)
    assert not data.any()
    beside.close()
