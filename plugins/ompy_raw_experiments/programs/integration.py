"""Figures 5-7 and 5-8: integrals by the trapezoidal rule and by the midpoint rule (thesis, 5.5.1 and 5.5.2)."""

from __future__ import annotations

from functools import partial

import numpy as np

from ompy import MPI
from ompy_raw_experiments.integrands import polynomial, quarter_circle
from ompy_raw_experiments.programs.measuring import Bench
from ompy_raw_experiments.programs.work import Loop

# Figure 5-6 as -O3 compiles it (thesis, 4.3.3): what occurs twice is computed once, constants are folded.  Then the sum and
# the next x.
TRAPEZOID = Loop(loads=9, adds=17, multiplies=15, divides=6)
# x = h * (i + 0.5), 4 / (1 + x * x), the sum.
MIDPOINT = Loop(loads=2, adds=3, multiplies=2, divides=1, instructions=5)


class Integration:
    """One of the two programs, on the tiles of `comm`; without one, the serial program."""

    def __init__(self, bench: Bench, low: float, high: float, steps: int) -> None:
        self.bench = bench
        self.bounds = np.array([low, high], "d")
        self.steps = steps
        self.result = 0.0

    def trapezoid(self, comm: MPI.Intracomm | None) -> None:
        """Pacheco's program: a, b and n are broadcast, and process 0 receives every other's part of the sum."""
        if comm is None:
            self.result = self.sum_trapezoids(0, 1)
            return
        for value in (self.bounds[:1], self.bounds[1:], np.array([self.steps], "i")):
            comm.Bcast(value, 0)
        part = np.array([self.sum_trapezoids(comm.rank, comm.size)])
        if comm.rank:
            comm.Send(part, 0)
            return
        self.result, received = part[0], np.zeros(1)
        for source in range(1, comm.size):
            comm.Recv(received, source)
            self.result += received[0]

    def sum_trapezoids(self, rank: int, size: int) -> float:
        low, high = self.bounds
        width, mine = (high - low) / self.steps, self.steps // size
        # x = 0 has no value in figure 5-6: the interval begins one step later.
        x = low + width * np.arange(rank * mine + 1, (rank + 1) * mine + 1)
        values = polynomial(x)
        self.bench.tile.advance(TRAPEZOID.cycles * mine)
        return float(width * (values.sum() - (values[0] + values[-1]) / 2))

    def pi(self, comm: MPI.Intracomm | None) -> None:
        """The tutorials' program: n is broadcast, and the parts are reduced."""
        size, rank = (1, 0) if comm is None else (comm.size, comm.rank)
        if comm is not None:
            comm.Bcast(np.array([self.steps], "i"), 0)
        x = (np.arange(rank, self.steps, size) + 0.5) / self.steps
        part = np.array([quarter_circle(x).sum() / self.steps])
        self.bench.tile.advance(MIDPOINT.cycles * len(x))
        total = part.copy()
        if comm is not None:
            comm.Reduce(part, total, MPI.SUM, 0)
        self.result = float(total[0])


def main() -> None:
    bench = Bench()
    options = bench.options
    integration = Integration(bench, options["low"], options["high"], options["steps"])
    program = getattr(integration, options["program"])
    for tiles in options["tiles"]:
        comm = bench.among(range(tiles))
        if comm is None:
            continue
        cycles = bench.span(comm, partial(program, comm if tiles > 1 else None))
        if comm.rank == 0:
            bench.report(tiles=tiles, cycles=cycles, result=integration.result)


if __name__ == "__main__":
    main()
