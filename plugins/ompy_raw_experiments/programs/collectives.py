"""Figures 5-4 and 5-5: collectives of LAM/MPI's algorithms on 16 tiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ompy import MPI
from ompy_raw_experiments.programs.measuring import Bench
from ompy_raw_experiments.programs.work import Loop
from ompy_raw_experiments.roots import ROOTS

Buffer = Any  # an `MPI.buffer`: memory of the library's
ADDITION = Loop(loads=2, stores=1, adds=1)


class Collectives:
    """Calls of `words` words each, as in the Intel MPI Benchmarks: of gathers and scatters, words a process."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.comm = bench.world
        self.size = bench.world.size
        self.root = ROOTS[self.size]
        self.sum = MPI.Op.Create(self.add, commute=True)

    def add(self, source: Buffer, target: Buffer, _datatype: MPI.Datatype) -> None:
        """MPI_SUM of floats, charged."""
        left, right = np.frombuffer(source, "f"), np.frombuffer(target, "f")
        right += left
        self.bench.tile.advance(ADDITION.cycles * len(left))

    def bcast(self, words: int) -> Callable[[], object]:
        return partial(self.comm.Bcast, np.zeros(words, "f"), self.root)

    def gather(self, words: int) -> Callable[[], object]:
        return partial(self.comm.Gather, np.zeros(words, "f"), np.zeros(words * self.size, "f"), self.root)

    def scatter(self, words: int) -> Callable[[], object]:
        return partial(self.comm.Scatter, np.zeros(words * self.size, "f"), np.zeros(words, "f"), self.root)

    def reduce(self, words: int) -> Callable[[], object]:
        return partial(self.comm.Reduce, np.zeros(words, "f"), np.zeros(words, "f"), self.sum, self.root)

    def allgather(self, words: int) -> Callable[[], object]:
        return partial(self.comm.Allgather, np.zeros(words, "f"), np.zeros(words * self.size, "f"))


def main() -> None:
    bench = Bench()
    collectives = Collectives(bench)
    for name, sizes in bench.options["calls"].items():
        for words in sizes:
            call = getattr(collectives, name)(words)
            cycles = bench.span(bench.world, call)
            if bench.world.rank == 0:
                bench.report(call=name, words=words, cycles=cycles)


if __name__ == "__main__":
    main()
