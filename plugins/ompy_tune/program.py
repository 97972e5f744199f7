"""What each rank of `ompy tune` runs: the ways of each function in turns, and the slowest rank's time of each."""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

from ompy import MPI, tool

# A batch of calls takes about so many seconds, and has no more calls than this.
BATCH = 5e-3
MOST_CALLS = 200


class Calls:
    """The functions, as calls of `nbytes` bytes: of those with a block for each rank, of one block."""

    def __init__(self, ranks: int, nbytes: int) -> None:
        self.ranks = ranks
        self.count = nbytes // 8
        self.one = self.memory(1)
        self.other = self.memory(1)
        self.many = self.memory(ranks)
        self.received = self.memory(ranks)

    def memory(self, blocks: int) -> list[Any]:
        return [bytearray(8 * self.count * blocks), MPI.DOUBLE]

    def vector(self, memory: list[Any]) -> list[Any]:
        return [memory[0], ([self.count] * self.ranks, None), MPI.DOUBLE]

    def of(self, function: str) -> Callable[[MPI.Intracomm, int], object]:
        """A call on a communicator with a root."""
        one, other, many, received = self.one, self.other, self.many, self.received
        counts = [self.count] * self.ranks
        types = [[self.count * 8 * rank for rank in range(self.ranks)], [MPI.DOUBLE] * self.ranks]
        calls: dict[str, Callable[[Any, int], object]] = {
            "barrier": lambda comm, root: comm.Barrier(),
            "bcast": lambda comm, root: comm.Bcast(one, root),
            "gather": lambda comm, root: comm.Gather(one, received, root),
            "scatter": lambda comm, root: comm.Scatter(many, other, root),
            "allgather": lambda comm, root: comm.Allgather(one, received),
            "allgatherv": lambda comm, root: comm.Allgatherv(one, self.vector(received)),
            "alltoall": lambda comm, root: comm.Alltoall(many, received),
            "alltoallv": lambda comm, root: comm.Alltoallv(self.vector(many), self.vector(received)),
            "alltoallw": lambda comm, root: comm.Alltoallw(
                [many[0], (counts, types[0]), types[1]], [received[0], (counts, types[0]), types[1]]
            ),
            "reduce": lambda comm, root: comm.Reduce(one, other, MPI.SUM, root),
            "allreduce": lambda comm, root: comm.Allreduce(one, other, MPI.SUM),
            "reduce_scatter_block": lambda comm, root: comm.Reduce_scatter_block(many, other, MPI.SUM),
            "reduce_scatter": lambda comm, root: comm.Reduce_scatter(many, other, counts, MPI.SUM),
        }
        return calls[function]


def communicator(world: MPI.Intracomm, parameters: Mapping[str, Any]) -> MPI.Intracomm:
    """A communicator made while these parameters are set."""
    variables = {tool.control_variable(name): value for name, value in parameters.items()}
    before = {variable: variable.read() for variable in variables}
    for variable, value in variables.items():
        variable.write(value)
    made = world.Dup()
    for variable, value in before.items():
        variable.write(value)
    return made


def measure(
    world: MPI.Intracomm, comms: Sequence[MPI.Intracomm], call: Callable[[MPI.Intracomm, int], object], rounds: int
) -> list[float]:
    """Seconds of one call on each communicator: medians over so many turns, of the slowest rank."""
    counts = []
    # In no order that would suit one tree more than others: the rank that begins the next call should be none that such a
    # tree comes to first, or last.
    roots = Random(0).choices(range(world.size), k=MOST_CALLS)
    for comm in comms:
        for root in roots[:2]:
            call(comm, root)
        world.Barrier()
        begin = perf_counter()
        call(comm, 0)
        once = world.allreduce(perf_counter() - begin, op=MPI.MAX)
        counts.append(max(1, min(MOST_CALLS, int(BATCH / once))))
    samples = array("d")
    for turn in range(rounds):
        # Forwards and backwards in turn, so that nobody always comes after the same one.
        for comm, count in list(zip(comms, counts, strict=True))[:: -1 if turn % 2 else 1]:
            world.Barrier()
            begin = perf_counter()
            for root in roots[:count]:
                call(comm, root)
            samples.append((perf_counter() - begin) / count)
    slowest = array("d", samples)
    world.Allreduce(samples, slowest, MPI.MAX)
    turns = [slowest[turn * len(comms) : (turn + 1) * len(comms)][:: -1 if turn % 2 else 1] for turn in range(rounds)]
    return [median(it) for it in zip(*turns, strict=True)]


def main() -> None:
    """The order is JSON: {"functions": {name: {label: parameters}}, "bytes": [...], "least": {label: bytes}, "rounds"}.

    Rank 0 prints a line of JSON for each function and size: {"function", "ranks", "bytes", "seconds": {label: ...}}.
    """
    order = json.loads(sys.argv[1])
    world = MPI.COMM_WORLD
    for function, labelled in order["functions"].items():
        comms = {label: communicator(world, parameters) for label, parameters in labelled.items()}
        for nbytes in order["bytes"] if function != "barrier" else [0]:
            labels = [label for label in comms if order["least"].get(label, 0) <= nbytes]
            call = Calls(world.size, nbytes).of(function)
            seconds = measure(world, [comms[label] for label in labels], call, order["rounds"])
            if world.rank == 0:
                line = {
                    "function": function,
                    "ranks": world.size,
                    "bytes": nbytes,
                    "seconds": dict(zip(labels, seconds, strict=True)),
                }
                print(json.dumps(line), flush=True)
        for comm in comms.values():
            comm.Free()


if __name__ == "__main__":
    main()
