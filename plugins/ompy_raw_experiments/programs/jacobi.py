"""Figure 5-10: Jacobi relaxation on rows of a square, each tile its block of them (thesis, 5.5.3).

Two parallel programs: `same` does what the serial one does between exchanges of border rows.  `tested` also sums up the
squares of all changes after each sweep and copies the new values back, as the widespread tutorial programs do.
"""

from __future__ import annotations

import numpy as np

from ompy import MPI
from ompy_raw_experiments.programs.measuring import Bench
from ompy_raw_experiments.programs.work import WORD_BYTES, Loop, misses

# A quarter of four neighbours' sum.
SWEEP = Loop(loads=4, stores=1, adds=3, multiplies=1)
# The change's square, added up; the new value copied back.
TEST = Loop(loads=1, adds=2, multiplies=1, instructions=0)
COPY = Loop(loads=1, stores=1)


def relax(old: np.ndarray, new: np.ndarray) -> None:
    """One sweep over the interior."""
    new[1:-1, 1:-1] = (old[1:-1, :-2] + old[1:-1, 2:] + old[:-2, 1:-1] + old[2:, 1:-1]) * np.float32(0.25)


def exchange_borders(comm: MPI.Intracomm, block: np.ndarray) -> None:
    """The first and last row go to the neighbours, theirs come around the block; even ranks send first."""
    for step in (0, 1):
        for peer, own, theirs in ((comm.rank - 1, 1, 0), (comm.rank + 1, -2, -1)):
            if 0 <= peer < comm.size:
                if comm.rank % 2 == step:
                    comm.Send(block[own], peer)
                else:
                    comm.Recv(block[theirs], peer)


def run(bench: Bench, comm: MPI.Intracomm, side: int, sweeps: int, tested: bool) -> float:
    """All sweeps; the sum of what this tile has in the end."""
    rows = side // comm.size
    old = np.zeros((rows + 2, side), "f")
    if comm.rank == 0:
        old[1] = 1
    new = old.copy()
    data = 2 * rows * side * WORD_BYTES
    streams = 4 if tested else 2
    lost = misses(streams * rows * side * WORD_BYTES, data)
    cycles = SWEEP.cycles + (TEST.cycles + COPY.cycles if tested else 0)
    for _ in range(sweeps):
        if comm.size > 1:
            exchange_borders(comm, old)
        relax(old, new)
        bench.tile.advance(cycles * rows * side + lost)
        if tested and comm.size > 1:
            change = np.array([np.square(new[1:-1] - old[1:-1]).sum(dtype="d")])
            comm.Allreduce(change, np.zeros(1))
        old, new = new, old
    return float(old[1:-1].sum(dtype="d"))


def measured(bench: Bench, comm: MPI.Intracomm, side: int, sweeps: int, tested: bool) -> tuple[int, float]:
    """Cycles, and the sum of the whole square."""
    sums: list[float] = []
    cycles = bench.span(comm, lambda: sums.append(run(bench, comm, side, sweeps, tested)))
    return cycles, comm.allreduce(sums[0])


def main() -> None:
    bench = Bench()
    side, sweeps = bench.options["side"], bench.options["sweeps"]
    for tiles in bench.options["tiles"]:
        comm = bench.among(range(tiles))
        if comm is None:
            continue
        for program in ("same", "tested") if tiles > 1 else ("same",):
            cycles, total = measured(bench, comm, side, sweeps, program == "tested")
            if comm.rank == 0:
                bench.report(tiles=tiles, program=program, cycles=cycles, result=total)


if __name__ == "__main__":
    main()
