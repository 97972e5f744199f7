"""Figure 5-12: the product of a 640 x 150 and a 150 x 700 matrix of doubles (thesis, 5.5.4).

A manager sends each worker all of B and its rows of A, and collects its rows of C: with two tiles one works, with sixteen
fifteen do.  These are the dimensions, times ten, of the tutorial program mpi_mm.c, which is organised so; and a curve that is
below 1 on two tiles and 2.8 on four is that of such a program.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ompy import MPI
from ompy_raw_experiments.partition import shares
from ompy_raw_experiments.programs.measuring import Bench
from ompy_raw_experiments.programs.work import Loop, misses

# One product added up; a double is two words.
STEP = Loop(loads=4, adds=1, multiplies=1)


class Product:
    """left @ right, on the tiles of a communicator."""

    def __init__(self, bench: Bench, left: np.ndarray, right: np.ndarray) -> None:
        self.bench = bench
        self.left = left
        self.right = right
        self.product = np.zeros((left.shape[0], right.shape[1]))
        self.data_bytes = left.nbytes + right.nbytes + self.product.nbytes

    def multiply(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The product, and its cycles on the tile.  All of `right` stays in the cache from one row to the next."""
        self.bench.tile.advance(STEP.cycles * left.shape[0] * left.shape[1] * right.shape[1])
        return np.asarray(left @ right)

    def touch(self, touched_bytes: int, *matrices: np.ndarray) -> None:
        """Charge a run through these matrices."""
        self.bench.tile.advance(sum(misses(matrix.nbytes, touched_bytes) for matrix in matrices))

    def serially(self) -> None:
        self.touch(self.data_bytes, self.left, self.product)
        self.product[:] = self.multiply(self.left, self.right)

    def manage(self, comm: MPI.Intracomm) -> None:
        parts = shares(self.left.shape[0], comm.size - 1)
        for worker, (first, count) in enumerate(parts, start=1):
            rows = self.left[first : first + count]
            self.touch(self.data_bytes, rows)
            comm.Send(rows, worker)
            comm.Send(self.right, worker)
        for worker, (first, count) in enumerate(parts, start=1):
            rows = self.product[first : first + count]
            comm.Recv(rows, worker)
            self.touch(self.data_bytes, rows)

    def work(self, comm: MPI.Intracomm) -> None:
        _, count = shares(self.left.shape[0], comm.size - 1)[comm.rank - 1]
        rows, right = np.zeros((count, self.left.shape[1])), np.zeros_like(self.right)
        comm.Recv(rows, 0)
        comm.Recv(right, 0)
        product = self.multiply(rows, right)
        self.touch(rows.nbytes + right.nbytes + product.nbytes, rows, right, product)
        comm.Send(product, 0)

    def run(self, comm: MPI.Intracomm) -> None:
        if comm.size == 1:
            self.serially()
        elif comm.rank == 0:
            self.manage(comm)
        else:
            self.work(comm)


def main() -> None:
    bench = Bench()
    rows, inner, columns = bench.options["shape"]
    left = np.add.outer(np.arange(rows), np.arange(inner)) * 1.0
    right = np.subtract.outer(np.arange(inner), np.arange(columns)) * 1.0
    for tiles in bench.options["tiles"]:
        comm = bench.among(range(tiles))
        if comm is None:
            continue
        product = Product(bench, left, right)
        cycles = bench.span(comm, partial(product.run, comm))
        if comm.rank == 0:
            bench.report(tiles=tiles, cycles=cycles, right=bool((product.product == left @ right).all()))


if __name__ == "__main__":
    main()
