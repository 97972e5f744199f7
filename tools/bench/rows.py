"""What is measured: one function a row, run on every rank of whichever library stands behind `mpi4py`.

    <launcher> -n N python rows.py ROW [ROW ...]

Rank 0 prints a JSON object a line, as soon as it has it: {"row": name, "samples": {"": [seconds of one operation, each]},
"cpu": CPU seconds of one operation, all ranks together}.  A sample is the mean of a batch that takes at least 200
microseconds; the first 50 operations are not counted, or fewer where they are very slow.  Of collectives the slowest rank
counts.  Messages go between neighbours, all pairs at once.  Two bound ranks probe how far their cores are apart before and
after each sample, and drop it when that has changed; the last row, `line`, is what they found, one way, on one host.  What is
done in a second way has its samples under a name of their own.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable
from time import perf_counter, process_time

import numpy as np
from busy import with_busy_peer
from files import with_file
from line import Line
from lives import lives, spawned
from memory import resident
from mpi4py import MPI
from windows import with_window

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
other, begins = rank ^ 1, rank % 2 == 0

WARM_UP = 50
SHORTEST_BATCH = 200e-6
FEWEST, MOST = 5, 60
# Seconds that a row's samples, and the operations before them, may take.
LONGEST_ROW = 2.0
LONGEST_WARM_UP = 1.0
# Probes before and after a sample may differ by this factor.
STEADY = 1.3
# Memory that cold rows rotate over, bytes: more than any cache.
COLD = 96 << 20

line = Line(comm) if size == 2 and len(set(comm.allgather(os.uname().nodename))) == 1 else None
cpu_seconds: dict[str, float] = {}
probes: list[float] = []


def pace(operation: Callable[[], object], count: int) -> float:
    """Seconds of one of so many operations, the same on every rank."""
    begin = perf_counter()
    for _ in range(count):
        operation()
    once: float = comm.bcast((perf_counter() - begin) / count, root=0)
    return once


def batches(operation: Callable[[], object], shared: float = 1.0) -> list[float]:
    """Seconds of one operation, sampled in batches that every rank makes equally long.

    Parameters:
        operation: called on every rank.
        shared: what one call counts for (a round trip is two messages, a window many).
    """
    warm_up = max(1, min(WARM_UP, int(LONGEST_WARM_UP / pace(operation, 1))))
    pace(operation, warm_up)
    comm.Barrier()
    once = pace(operation, min(10, warm_up))
    count = int(SHORTEST_BATCH / max(once, 1e-9)) + 1
    samples = max(FEWEST, min(MOST, int(LONGEST_ROW / (count * once))))
    found: list[float] = []
    unsteady: list[float] = []
    cpu = 0.0
    for _ in range(samples):
        comm.Barrier()
        before = line.probe() if line else 0.0
        began = process_time()
        begin = perf_counter()
        for _ in range(count):
            operation()
        elapsed = perf_counter() - begin
        cpu += process_time() - began
        comm.Barrier()  # whose memory the others access lets them go on there, and in a probe it would not
        after = line.probe() if line else 0.0
        elapsed, apart = comm.allreduce(elapsed, op=MPI.MAX), max(before, after) > STEADY * min(before, after)
        (unsteady if comm.bcast(apart, root=0) else found).append(elapsed / count / shared)
        probes.append(before / 2)
    cpu_seconds["last"] = comm.allreduce(cpu, op=MPI.SUM) / samples / count / shared
    return found if len(found) >= 3 else found + unsteady


def round_trip(nbytes: int, *, heap: bool = False) -> Callable[[], object]:
    """Ping and pong between neighbours, in ordinary arrays or in memory of the library's."""
    if heap:
        memory = [np.frombuffer(MPI.Alloc_mem(max(nbytes, 1)), dtype=np.uint8) for _ in range(2)]
        out, into = (array[:nbytes] for array in memory)
    else:
        out, into = np.ones(nbytes, dtype=np.uint8), np.zeros(nbytes, dtype=np.uint8)
    send, recv = comm.Send, comm.Recv
    outgoing, incoming = [out, nbytes, MPI.BYTE], [into, nbytes, MPI.BYTE]

    def ping() -> None:
        send(outgoing, other, 1)
        recv(incoming, other, 1)

    def pong() -> None:
        recv(incoming, other, 1)
        send(outgoing, other, 1)

    return ping if begins else pong


def cold(nbytes: int) -> Callable[[], object]:
    """Ping and pong of arrays that no cache holds any more."""
    arrays = [np.ones(nbytes, dtype=np.uint8) for _ in range(max(2, COLD // nbytes))]
    turn = itertools.cycle(arrays)

    def ping() -> None:
        comm.Send([next(turn), MPI.BYTE], other, 1)
        comm.Recv([next(turn), MPI.BYTE], other, 1)

    def pong() -> None:
        comm.Recv([next(turn), MPI.BYTE], other, 1)
        comm.Send([next(turn), MPI.BYTE], other, 1)

    return ping if begins else pong


def window(nbytes: int, depth: int) -> Callable[[], object]:
    """`depth` messages one way under way at once, and a short answer."""
    arrays = [np.ones(nbytes, dtype=np.uint8) for _ in range(depth)]
    answer = bytearray(1)

    def sender() -> None:
        MPI.Request.Waitall([comm.Isend([array, MPI.BYTE], other, 2) for array in arrays])
        comm.Recv([answer, MPI.BYTE], other, 3)

    def receiver() -> None:
        MPI.Request.Waitall([comm.Irecv([array, MPI.BYTE], other, 2) for array in arrays])
        comm.Send([answer, MPI.BYTE], other, 3)

    return sender if begins else receiver


def pickled(value: object) -> Callable[[], object]:
    """An object there and back by lower-case `send` and `recv`."""

    def ping() -> None:
        comm.send(value, other, 4)
        comm.recv(None, other, 4)

    def pong() -> None:
        comm.recv(None, other, 4)
        comm.send(value, other, 4)

    return ping if begins else pong


def behind(depth: int, posted: bool) -> list[float]:
    """A round trip of 8 bytes past `depth` entries that stand in the matching queues."""
    filler = np.zeros(1, dtype=np.uint8)
    waiting = []
    if posted:
        waiting = [comm.Irecv([np.zeros(1, dtype=np.uint8), MPI.BYTE], other, 1000 + n) for n in range(depth)]
    else:
        for n in range(depth):
            comm.Send([filler, MPI.BYTE], other, 1000 + n)
    comm.Barrier()
    found = batches(round_trip(8), 2)
    if posted:
        for n in range(depth):
            comm.Send([filler, MPI.BYTE], other, 1000 + n)
        MPI.Request.Waitall(waiting)
    else:
        for n in range(depth):
            comm.Recv([filler, MPI.BYTE], other, 1000 + n)
    return found


def column(count: int) -> Callable[[], object]:
    """One column of a square matrix of doubles, by a vector type on both sides."""
    matrix = np.ones((count, count))
    strided = MPI.DOUBLE.Create_vector(count, 1, count).Commit()
    spec = [matrix, 1, strided]

    def ping() -> None:
        comm.Send(spec, other, 5)
        comm.Recv(spec, other, 5)

    def pong() -> None:
        comm.Recv(spec, other, 5)
        comm.Send(spec, other, 5)

    return ping if begins else pong


def collective(name: str, nbytes: int) -> Callable[[], object]:
    """One blocking collective with `nbytes` a rank."""
    count = max(1, nbytes // 8)
    mine, all_of = np.ones(count), np.ones(count * size)
    result = np.zeros(count)
    everything = np.zeros(count * size)
    part = max(1, count // size)
    calls: dict[str, Callable[[], object]] = {
        "barrier": comm.Barrier,
        "bcast": lambda: comm.Bcast([mine, MPI.DOUBLE], 0),
        "reduce": lambda: comm.Reduce([mine, MPI.DOUBLE], [result, MPI.DOUBLE], MPI.SUM, 0),
        "allreduce": lambda: comm.Allreduce([mine, MPI.DOUBLE], [result, MPI.DOUBLE], MPI.SUM),
        "allgather": lambda: comm.Allgather([mine, MPI.DOUBLE], [everything, MPI.DOUBLE]),
        "alltoall": lambda: comm.Alltoall([all_of[: part * size], part, MPI.DOUBLE], [everything, part, MPI.DOUBLE]),
        "reduce_scatter": lambda: comm.Reduce_scatter_block([all_of, count, MPI.DOUBLE], [result, count, MPI.DOUBLE], MPI.SUM),
        "scan": lambda: comm.Scan([mine, MPI.DOUBLE], [result, MPI.DOUBLE], MPI.SUM),
    }
    return calls[name]


def of_ranks() -> list[float]:
    """Bytes of memory a rank, after every rank has spoken to its neighbours."""
    right, left = (rank + 1) % size, (rank - 1) % size
    comm.Sendrecv(np.zeros(1), right, 0, np.zeros(1), left, 0)
    comm.Barrier()
    return [float(np.mean(comm.allgather(resident())))]


def measure(row: str) -> list[float]:
    """The samples of one row: `name`, `name:bytes`, or `name:bytes:more`."""
    name, *arguments = row.split(":")
    numbers = [int(argument) for argument in arguments if argument.isdigit()]
    if name in ("latency", "numpy_heap"):
        return batches(round_trip(*numbers), 2)
    if name == "cold":
        return batches(cold(*numbers), 2)
    if name == "heap":
        return batches(round_trip(*numbers, heap=True), 2)
    if name == "window":
        return batches(window(*numbers), numbers[1])
    if name == "pickle_dict":
        return batches(pickled({"a": 1, "b": [1.0, 2.0], "c": "text"}), 2)
    if name == "pickle_array":
        return batches(pickled(np.ones(numbers[0], dtype=np.uint8)), 2)
    if name in ("posted", "unexpected"):
        return behind(numbers[0], name == "posted")
    if name == "column":
        return batches(column(*numbers), 2)
    if name == "resident":
        return of_ranks()
    if name.startswith("rma_"):
        return with_window(comm, name, numbers[0], batches)
    if name.startswith(("busy_", "asleep_")):
        return with_busy_peer(comm, name, numbers[0])
    if name == "spawn":
        return batches(spawned(*numbers))
    if name.startswith(("comm_", "win_", "type_")):
        return batches(lives(comm)[name])
    return batches(collective(name, *numbers))


def tell(row: str, samples: dict[str, list[float]], cpu: float) -> None:
    if rank == 0:
        print(json.dumps({"row": row, "samples": samples, "cpu": cpu}), flush=True)


def main() -> None:
    for row in sys.argv[1:]:
        cpu_seconds.clear()
        name, _, nbytes = row.partition(":")
        samples = with_file(comm, name, int(nbytes), batches) if name.startswith("file_") else {"": measure(row)}
        tell(row, samples, 0.0 if len(samples) > 1 else cpu_seconds.get("last", 0.0))
    if line and probes:
        tell("line", {"": probes}, 0.0)


if __name__ == "__main__":
    main()
