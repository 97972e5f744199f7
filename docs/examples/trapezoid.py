#!/usr/bin/env python3
"""Integrate a polynomial with the trapezoidal rule, each rank a stretch of the interval.

    ompyrun -n 4 --mpi4py python trapezoid.py --trapezoids 16384

The result is checked against the antiderivative and the rule's error bound, (b - a)^3 / (12 n^2) * max |f''|.
Uses pickled objects only: `bcast` and `reduce`.
"""

from __future__ import annotations

import argparse
import math
import sys

from mpi4py import MPI


def value(coefficients: list[float], x: float) -> float:
    """The polynomial at x (Horner); the coefficient of the highest power comes first."""
    result = 0.0
    for coefficient in coefficients:
        result = result * x + coefficient
    return result


def derivative(coefficients: list[float]) -> list[float]:
    degree = len(coefficients) - 1
    return [coefficient * (degree - place) for place, coefficient in enumerate(coefficients[:-1])] or [0.0]


def antiderivative(coefficients: list[float]) -> list[float]:
    degree = len(coefficients)
    return [coefficient / (degree - place) for place, coefficient in enumerate(coefficients)] + [0.0]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Integrate a polynomial with the trapezoidal rule.")
    parser.add_argument("--trapezoids", type=int, default=16384, metavar="N")
    parser.add_argument("--from", dest="start", type=float, default=0.0, metavar="A")
    parser.add_argument("--to", dest="end", type=float, default=1048576.0, metavar="B")
    parser.add_argument(
        "--coefficients", type=float, nargs="+", default=[9.0, 9.19191, -2.0, 8.0], metavar="C", help="highest power first"
    )
    given = parser.parse_args()
    if given.trapezoids < 1 or given.end <= given.start:
        parser.error("expected N >= 1 and A < B")
    return given


def main() -> int:
    comm = MPI.COMM_WORLD
    # Every rank reads the command line, so that a mistake in it ends them all; rank 0's reading counts.
    given = comm.bcast(arguments(), root=0)
    n, a, b, coefficients = given.trapezoids, given.start, given.end, given.coefficients
    width = (b - a) / n

    comm.Barrier()
    begun = MPI.Wtime()
    first, last = n * comm.rank // comm.size, n * (comm.rank + 1) // comm.size
    inner = math.fsum(value(coefficients, a + place * width) for place in range(max(first, 1), last))
    area = comm.reduce(inner * width, op=MPI.SUM, root=0)
    elapsed = MPI.Wtime() - begun

    correct = True
    if comm.rank == 0:
        area += width * (value(coefficients, a) + value(coefficients, b)) / 2
        whole = antiderivative(coefficients)
        exact = value(whole, b) - value(whole, a)
        bend = [abs(c) for c in derivative(derivative(coefficients))]
        bound = (b - a) ** 3 / (12 * n**2) * value(bend, max(abs(a), abs(b))) + 1e-12 * abs(exact)
        correct = abs(area - exact) <= bound
        print(f"integral of {coefficients} from {a:g} to {b:g}, {n} trapezoids on {comm.size} ranks")
        print(f"  result   {area:.15e}")
        print(f"  exact    {exact:.15e}   off by {abs(area - exact):.1e}, allowed {bound:.1e}")
        print(f"  time     {elapsed * 1e3:.2f} ms   {'correct' if correct else 'WRONG'}", flush=True)
    return 0 if comm.bcast(correct, root=0) else 1


if __name__ == "__main__":
    sys.exit(main())
