#!/usr/bin/env python3
"""Estimate pi as the integral of 4 / (1 + x^2) over [0, 1] by the midpoint rule, intervals dealt out in turn.

    ompyrun -n 4 --mpi4py python pi.py --intervals 10000000

The result is checked against math.pi and the rule's error bound, 1 / (3 n^2), with room for rounding.
Uses buffers: `Bcast` and `Reduce` of NumPy arrays.
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np
from mpi4py import MPI

BLOCK = 1 << 16  # midpoints computed at a time, to stay in the cache


def partial_sum(intervals: int, rank: int, size: int) -> float:
    """Sum over the midpoints rank, rank + size, rank + 2 size, ..."""
    total = 0.0
    for start in range(rank, intervals, size * BLOCK):
        places = np.arange(start, min(start + size * BLOCK, intervals), size)
        x = (places + 0.5) / intervals
        total += float(np.sum(4.0 / (1.0 + x * x)))
    return total / intervals


def main() -> int:
    comm = MPI.COMM_WORLD
    parser = argparse.ArgumentParser(description="Estimate pi by the midpoint rule.")
    parser.add_argument("--intervals", type=int, default=10_000_000, metavar="N")
    given = parser.parse_args()
    if given.intervals < 1:
        parser.error("expected N >= 1")
    intervals = np.array(given.intervals if comm.rank == 0 else 0, dtype="i8")

    comm.Barrier()
    begun = MPI.Wtime()
    comm.Bcast(intervals, root=0)
    n = int(intervals)
    part = np.array(partial_sum(n, comm.rank, comm.size))
    estimate = np.zeros(())
    comm.Reduce(part, estimate, op=MPI.SUM, root=0)
    elapsed = MPI.Wtime() - begun

    correct = np.ones((), dtype="i4")
    if comm.rank == 0:
        error = abs(float(estimate) - math.pi)
        allowed = 1 / (3 * n**2) + 1e-12
        correct[...] = error <= allowed
        print(f"pi from {n} intervals on {comm.size} ranks")
        print(f"  result   {float(estimate):.15f}")
        print(f"  pi       {math.pi:.15f}   off by {error:.1e}, allowed {allowed:.1e}")
        print(f"  time     {elapsed * 1e3:.2f} ms   {'correct' if correct else 'WRONG'}", flush=True)
    comm.Bcast(correct, root=0)
    return 0 if correct else 1


if __name__ == "__main__":
    sys.exit(main())
