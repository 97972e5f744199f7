"""Short messages that are sent one after the other over a network, and leave together."""

from __future__ import annotations

import os
import socket

import pytest

from ompy import MPI

OVER_TCP = pytest.mark.ompy(2, mca={"btl": "self,tcp"}, timeout=60)
BURST = 200


def alone(number: int) -> bytearray:
    return bytearray(b"%08d" % number)


def talk() -> socket.socket:
    """Something beside MPI between the two ranks."""
    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        listening = socket.create_server(("127.0.0.1", 0))
        comm.send(listening.getsockname()[1], 1)
        with listening:
            return listening.accept()[0]
    return socket.create_connection(("127.0.0.1", comm.recv(source=0)))


def receive_all(count: int) -> None:
    comm = MPI.COMM_WORLD
    for number in range(count):
        data = bytearray(8)
        comm.Recv(data, 0)
        assert data == alone(number)


@OVER_TCP
@pytest.mark.parametrize("waits", [True, False], ids=["waited for", "not waited for"])
@pytest.mark.parametrize("way", ["Isend", "Send", "isend"])
def test_a_burst_arrives_though_its_sender_makes_no_further_call(way: str, waits: bool) -> None:
    comm = MPI.COMM_WORLD
    with talk() as beside:
        if comm.rank == 0:
            if way == "Send":
                for number in range(BURST):
                    comm.Send(alone(number), 1)
            else:
                send = comm.Isend if way == "Isend" else comm.isend
                requests = [send(alone(number), 1) for number in range(BURST)]
                if waits:
                    MPI.Request.Waitall(requests)
            assert beside.recv(1) == b"."  # nothing of MPI's is called meanwhile
            if way != "Send" and not waits:
                MPI.Request.Waitall(requests)
        else:
            if way == "isend":
                assert [comm.recv(source=0) for _ in range(BURST)] == [alone(number) for number in range(BURST)]
            else:
                receive_all(BURST)
            beside.send(b".")
    comm.Barrier()


@OVER_TCP
def test_each_request_of_a_burst_is_its_own_to_its_caller() -> None:
    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        requests = [comm.Isend(alone(number), 1) for number in range(12)]
        requests[1].Free()
        requests[2].Cancel()
        status = MPI.Status()
        requests[2].Wait(status)
        assert not status.Is_cancelled()
        requests[3].Wait()
        while not requests[4].Test():
            pass
        index = MPI.Request.Waitany(requests[5:8])
        assert requests[5 + index] == MPI.REQUEST_NULL
        assert all(requests[number] == MPI.REQUEST_NULL for number in (1, 2, 3, 4))
        del requests[8]
        MPI.Request.Waitall(requests)
        assert all(request == MPI.REQUEST_NULL for request in requests)
        with pytest.raises(MPI.Exception):
            requests[0].Cancel()
    else:
        receive_all(12)
    comm.Barrier()


@OVER_TCP
def test_order_holds_between_messages_that_leave_together_and_others() -> None:
    comm = MPI.COMM_WORLD
    sizes = [8, 8, 5000, 0, 8, 300_000, 8, 1000, 1000, 1000, 8, 8] * 20
    if comm.rank == 0:
        requests = []
        for number, size in enumerate(sizes):
            data = bytes([number % 251]) * size
            if number % 5 == 4:
                comm.Send(data, 1, 3)
            else:
                requests.append(comm.Isend(data, 1, 3))
        MPI.Request.Waitall(requests)
    else:
        for number, size in enumerate(sizes):
            data, status = bytearray(size + 1), MPI.Status()
            comm.Recv([data, MPI.BYTE], 0, 3, status)
            assert (status.Get_count(MPI.BYTE), data[:size]) == (size, bytes([number % 251]) * size)
    comm.Barrier()


@OVER_TCP
def test_a_child_that_ends_in_the_middle_of_a_burst_disturbs_nothing() -> None:
    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        requests = [comm.Isend(alone(number), 1) for number in range(20)]
        if (child := os.fork()) == 0:
            os._exit(0)
        os.waitpid(child, 0)
        requests += [comm.Isend(alone(number), 1) for number in range(20, 40)]
        comm.Barrier()
        del requests
    else:
        comm.Barrier()
        receive_all(40)
