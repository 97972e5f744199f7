"""btl/zmq against raw pyzmq between the same two processes, over TCP on this host.

    ompyrun -n 2 --mca btl self,zmq python sockets.py

Rank 0 prints one JSON object: {"<bytes>": [seconds of half a round trip by MPI, by pyzmq]}.  They take turns.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from time import perf_counter

import numpy as np
import zmq
from mpi4py import MPI

SIZES = {8: 200, 4096: 200, 1 << 20: 20}
ROUNDS = 9

comm = MPI.COMM_WORLD
rank = comm.Get_rank()


def sockets() -> zmq.Socket[bytes]:
    """A pair of connected sockets, one in each rank."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
    socket = context.socket(zmq.PAIR)
    if rank == 0:
        comm.send(socket.bind_to_random_port("tcp://127.0.0.1"), dest=1)
    else:
        socket.connect(f"tcp://127.0.0.1:{comm.recv(source=0)}")
    return socket


def by_mpi(size: int) -> Callable[[], None]:
    out, into = np.ones(size, dtype=np.uint8), np.zeros(size, dtype=np.uint8)

    def ping() -> None:
        comm.Send(out, 1)
        comm.Recv(into, 1)

    def pong() -> None:
        comm.Recv(into, 0)
        comm.Send(out, 0)

    return pong if rank else ping


def by_pyzmq(size: int, socket: zmq.Socket[bytes]) -> Callable[[], None]:
    """Long messages are sent without a copy, and received into memory that is there, as MPI's are."""
    out, into = bytearray(size), bytearray(size)

    def receive() -> None:
        into[:] = socket.recv(copy=False).buffer

    def ping() -> None:
        socket.send(out, 0, size < 65536)
        receive()

    def pong() -> None:
        receive()
        socket.send(out, 0, size < 65536)

    return pong if rank else ping


def seconds(operation: Callable[[], None], count: int) -> float:
    comm.Barrier()
    begin = perf_counter()
    for _ in range(count):
        operation()
    return (perf_counter() - begin) / count / 2


def main() -> None:
    socket = sockets()
    found: dict[int, list[float]] = {}
    for size, count in SIZES.items():
        ways = [by_mpi(size), by_pyzmq(size, socket)]
        for way in ways:
            seconds(way, count)
        samples = [[seconds(way, count) for way in ways] for _ in range(ROUNDS)]
        found[size] = [statistics.median(column) for column in zip(*samples, strict=True)]
    if rank == 0:
        print(json.dumps(found), flush=True)
    socket.close(linger=0)


if __name__ == "__main__":
    main()
