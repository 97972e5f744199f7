"""btl/zmq against raw pyzmq between the same two processes, over TCP on this host.

    ompyrun -n 2 --mca btl self,zmq python sockets.py sockets:BYTES sockets_window:BYTES ...

Rank 0 prints a JSON object a line: {"row": name, "samples": {"btl/zmq": [seconds], "pyzmq": [seconds]}, "cpu": 0}.  They take
turns.  `sockets` is half a round trip; `sockets_window` the time of a message when 16 are under way at once and the last is
answered, whose inverse is the bandwidth.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import perf_counter

import numpy as np
import zmq
from mpi4py import MPI

WINDOW = 16
SAMPLES = 9
# Bytes that a sample moves at least, and the fewest and most operations that it has.
SAMPLE = 16 << 20
FEWEST, MOST = 10, 200
# Shorter messages pyzmq copies sooner than it counts references to them.
SHORT = 65536

comm = MPI.COMM_WORLD
rank = comm.Get_rank()
other = 1 - rank

Operation = Callable[[], None]


def connected() -> zmq.Socket[bytes]:
    """A pair of connected sockets, one in each rank."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
    socket = context.socket(zmq.PAIR)
    if rank == 0:
        comm.send(socket.bind_to_random_port("tcp://127.0.0.1"), dest=1)
    else:
        socket.connect(f"tcp://127.0.0.1:{comm.recv(source=0)}")
    return socket


def round_trip(send: Operation, receive: Operation) -> Operation:
    def ping() -> None:
        send()
        receive()

    def pong() -> None:
        receive()
        send()

    return pong if rank else ping


def by_mpi(size: int) -> Operation:
    out, into = np.ones(size, dtype=np.uint8), np.zeros(size, dtype=np.uint8)
    return round_trip(lambda: comm.Send(out, other), lambda: comm.Recv(into, other))


def window_by_mpi(size: int) -> Operation:
    arrays, answer = [np.ones(size, dtype=np.uint8) for _ in range(WINDOW)], np.zeros(1, dtype=np.uint8)

    def sender() -> None:
        MPI.Request.Waitall([comm.Isend(array, other) for array in arrays])
        comm.Recv(answer, other)

    def receiver() -> None:
        MPI.Request.Waitall([comm.Irecv(array, other) for array in arrays])
        comm.Send(answer, other)

    return receiver if rank else sender


def by_pyzmq(size: int, socket: zmq.Socket[bytes]) -> Operation:
    """Long messages are sent without a copy, and received into memory that is there, as MPI's are."""
    out, into = bytearray(size), bytearray(size)

    def receive() -> None:
        into[:] = socket.recv(copy=False).buffer

    return round_trip(lambda: socket.send(out, 0, size < SHORT), receive)  # type: ignore[arg-type]


def window_by_pyzmq(size: int, socket: zmq.Socket[bytes]) -> Operation:
    arrays = [bytearray(size) for _ in range(WINDOW)]

    def sender() -> None:
        for array in arrays:
            socket.send(array, 0, size < SHORT)
        socket.recv()

    def receiver() -> None:
        for array in arrays:
            array[:] = socket.recv(copy=False).buffer
        socket.send(b"1")

    return receiver if rank else sender


def seconds(operation: Operation, count: int) -> float:
    comm.Barrier()
    begin = perf_counter()
    for _ in range(count):
        operation()
    return (perf_counter() - begin) / count


def main() -> None:
    socket = connected()
    for row in sys.argv[1:]:
        name, _, text = row.partition(":")
        size = int(text)
        if name == "sockets_window":
            ways, shared = [window_by_mpi(size), window_by_pyzmq(size, socket)], WINDOW
        else:
            ways, shared = [by_mpi(size), by_pyzmq(size, socket)], 2
        count = max(FEWEST, min(MOST, SAMPLE // (size * shared)))
        for way in ways:
            seconds(way, count)
        samples = [[seconds(way, count) / shared for way in ways] for _ in range(SAMPLES)]
        ours, raw = zip(*samples, strict=True)
        if rank == 0:
            print(json.dumps({"row": row, "samples": {"btl/zmq": ours, "pyzmq": raw}, "cpu": 0.0}), flush=True)
    socket.close(linger=0)


if __name__ == "__main__":
    main()
