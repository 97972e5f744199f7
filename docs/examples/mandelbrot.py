#!/usr/bin/env python3
"""The Mandelbrot set, written by all ranks together into one .npy file.

    ompyrun -n 4 --mpi4py python mandelbrot.py mandelbrot.npy
    python -c "import numpy; print(numpy.load('mandelbrot.npy', mmap_mode='r'))"

Rows are dealt out like cards, since those through the middle take longest.  Each rank's view of the file shows its own rows,
and one collective write puts all of them in order:

    mandelbrot.npy   |header| row 0 | row 1 | row 2 | row 3 | row 4 | ...
                        |     rank 0  rank 1  rank 2  rank 0  rank 1
                        `-- rank 0

The answer is checked: what the finished file holds, mapped by rank 0, is what one rank alone computes for some of the rows.
"""

from __future__ import annotations

import argparse
import io
import sys

import numpy as np
from mpi4py import MPI

LEFT, RIGHT, BOTTOM, TOP = -2.2, 0.8, -1.2, 1.2


def escapes(rows: np.ndarray, height: int, width: int, most: int) -> np.ndarray:
    """For each point of some rows, the number of steps until it is farther than 2 from the origin, at most `most`."""
    x = np.linspace(LEFT, RIGHT, width)
    y = TOP - rows * (TOP - BOTTOM) / (height - 1)
    c = x[None, :] + 1j * y[:, None]
    z, steps = np.zeros_like(c), np.zeros(c.shape, "i4")
    for _ in range(most):
        near = z.real**2 + z.imag**2 <= 4
        steps += near
        z[near] = z[near] ** 2 + c[near]
    return steps


def header(shape: tuple[int, ...], dtype: np.dtype) -> bytes:
    """The beginning of a .npy file."""
    written = io.BytesIO()
    np.lib.format.write_array_header_1_0(written, {"descr": dtype.str, "fortran_order": False, "shape": shape})
    return written.getvalue()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The Mandelbrot set as a .npy file.")
    parser.add_argument("file", help="name of the .npy file")
    parser.add_argument("--width", type=int, default=900)
    parser.add_argument("--height", type=int, default=720)
    parser.add_argument("--steps", type=int, default=200, help="at most, for a point")
    given = parser.parse_args()
    if given.width < 2 or given.height < 2 or given.steps < 1:
        parser.error("expected --width and --height of 2 or more, --steps of 1 or more")
    return given


def main() -> int:
    comm = MPI.COMM_WORLD
    given = arguments()
    height, width, steps = given.height, given.width, given.steps
    rows = np.arange(comm.rank, height, comm.size)
    begun = MPI.Wtime()
    own = escapes(rows, height, width, steps)
    computed = comm.allreduce(MPI.Wtime() - begun, op=MPI.MAX)

    begun = MPI.Wtime()
    head = header((height, width), own.dtype)
    row = MPI.INT32_T.Create_contiguous(width)
    every = row.Create_resized(0, comm.size * row.extent).Commit()
    file = MPI.File.Open(comm, given.file, MPI.MODE_WRONLY | MPI.MODE_CREATE)
    file.Set_size(0)
    if comm.rank == 0:
        file.Write_at(0, head)
    file.Set_view(len(head) + comm.rank * row.extent, MPI.INT32_T, every)
    file.Write_all(own)
    file.Close()
    written = comm.allreduce(MPI.Wtime() - begun, op=MPI.MAX)

    correct = True
    if comm.rank == 0:
        picture = np.load(given.file, mmap_mode="r")
        some = np.linspace(0, height - 1, 7).astype(int)
        correct = picture.shape == (height, width) and bool((picture[some] == escapes(some, height, width, steps)).all())
        print(f"{height} x {width} points on {comm.size} ranks")
        print(f"  computed in {computed:.2f} s, written in {1e3 * written:.1f} ms")
        print(f"  {given.file}: {100 * np.mean(picture == steps):.1f}% of its points never left   "
              f"{'correct' if correct else 'WRONG'}", flush=True)  # fmt: skip
    return 0 if comm.bcast(correct) else 1


if __name__ == "__main__":
    sys.exit(main())
