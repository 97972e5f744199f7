#!/usr/bin/env python3
"""Multiply two matrices, C = A B: every rank gets rows of A and all of B, and computes its rows of C.

    ompyrun -n 4 --mpi4py python matrix_product.py --rows 640 --inner 150 --columns 700

The entries are whole numbers held as doubles, so that the product is exact and can be compared bit by bit with the one
that rank 0 computes alone.  Uses `Scatterv`, `Bcast` and `Gatherv`; the number of rows need not divide evenly.
"""

from __future__ import annotations

import argparse
import sys
from itertools import pairwise

import numpy as np
from mpi4py import MPI


def main() -> int:
    comm = MPI.COMM_WORLD
    parser = argparse.ArgumentParser(description="Multiply two matrices by rows.")
    parser.add_argument("--rows", type=int, default=640, help="of A and C")
    parser.add_argument("--inner", type=int, default=150, help="columns of A, rows of B")
    parser.add_argument("--columns", type=int, default=700, help="of B and C")
    parser.add_argument("--seed", type=int, default=2006)
    given = parser.parse_args()
    rows, inner, columns = given.rows, given.inner, given.columns

    bounds = [rows * rank // comm.size for rank in range(comm.size + 1)]
    heights = [end - start for start, end in pairwise(bounds)]
    mine = heights[comm.rank]
    a = b = c = None
    if comm.rank == 0:
        print(f"A is {rows} x {inner}, B is {inner} x {columns}, seed {given.seed}, {comm.size} ranks")
        random = np.random.default_rng(given.seed)
        a = random.integers(-1000, 1000, (rows, inner)).astype("f8")
        b = random.integers(-1000, 1000, (inner, columns)).astype("f8")
        c = np.empty((rows, columns))
    else:
        b = np.empty((inner, columns))

    comm.Barrier()
    begun = MPI.Wtime()
    my_a = np.empty((mine, inner))
    sent = (
        None if a is None else [a, [height * inner for height in heights], [start * inner for start in bounds[:-1]], MPI.DOUBLE]
    )
    comm.Scatterv(sent, my_a, root=0)
    comm.Bcast(b, root=0)
    my_c = my_a @ b
    received = (
        None
        if c is None
        else [c, [height * columns for height in heights], [start * columns for start in bounds[:-1]], MPI.DOUBLE]
    )
    comm.Gatherv(my_c, received, root=0)
    elapsed = MPI.Wtime() - begun

    wrong = 0
    if comm.rank == 0:
        wrong = int(np.count_nonzero(c != a @ b))
        print(f"  result   C[0, 0] = {c[0, 0]:.0f}, sum = {c.sum():.0f}")
        print(f"  check    {wrong} of {c.size} entries differ from the product computed on one rank")
        print(f"  time     {elapsed * 1e3:.2f} ms   {'correct' if not wrong else 'WRONG'}", flush=True)
    return 1 if comm.bcast(wrong, root=0) else 0


if __name__ == "__main__":
    sys.exit(main())
