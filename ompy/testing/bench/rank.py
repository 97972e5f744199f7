"""What two ranks measure over the transport of their job; rank 0 prints it as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

SIZES = (0, 8, 64, 512, 4096, 32_768, 262_144, 1_048_576, 4_194_304)
SMALL = 8  # bytes of a message of which the rate is told
WINDOW = 32  # messages under way in the measurements of bandwidth and rate
SECONDS = 0.05  # of one measurement
MOST = 100_000


def timed(comm: Any, exchange: Callable[[], None]) -> float:
    """Seconds an exchange takes, as rank 0 sees it: as many in a row as fill the time, after some for warming up."""
    begin = perf_counter()
    exchange()
    exchange()
    count: int = comm.bcast(max(3, min(MOST, int(SECONDS / max((perf_counter() - begin) / 2, 1e-9)))))
    comm.Barrier()
    begin = perf_counter()
    for _ in range(count):
        exchange()
    return (perf_counter() - begin) / count


def measure(comm: Any) -> dict[str, dict[int, float]]:
    """Latency in seconds (half a round trip), bandwidth in bytes a second, and rate in messages a second, by bytes."""
    from ompy.mpi.request import Request

    peer, first = 1 - comm.rank, comm.rank == 0
    found: dict[str, dict[int, float]] = {"latency": {}, "bandwidth": {}, "rate": {}}
    for size in SIZES:
        memory, answer = bytearray(size), bytearray(1)

        def there_and_back(memory: bytearray = memory) -> None:
            if first:
                comm.Send(memory, peer)
                comm.Recv(memory, peer)
            else:
                comm.Recv(memory, peer)
                comm.Send(memory, peer)

        parts = [bytearray(size) for _ in range(WINDOW)]

        def one_way(parts: list[bytearray] = parts, answer: bytearray = answer) -> None:
            if first:
                Request.Waitall([comm.Isend(part, peer) for part in parts])
                comm.Recv(answer, peer)
            else:
                Request.Waitall([comm.Irecv(part, peer) for part in parts])
                comm.Send(answer, peer)

        found["latency"][size] = timed(comm, there_and_back) / 2
        seconds = timed(comm, one_way) / WINDOW
        if size:
            found["bandwidth"][size] = size / seconds
        if size == SMALL:
            found["rate"][size] = 1 / seconds
    return found


def main() -> None:
    from ompy import MPI

    comm = MPI.COMM_WORLD
    if comm.size != 2:
        sys.exit("two ranks measure")
    found = measure(comm)
    if comm.rank == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
