#!/usr/bin/env python3
"""A plate that cools, saved every few steps, and carried on by any number of ranks.

    ompyrun -n 4 --mpi4py python checkpoint.py plate.npy --steps 100      begins, or goes on from plate.npy
    ompyrun -n 3 --mpi4py python checkpoint.py plate.npy --steps 100      100 steps more, on three ranks

Ranks hold rectangles of the plate.  In the file it is one array of NumPy's, whoever wrote it: each rank's view of the file is
the rectangle that it holds, so that a collective write or read moves all of them at once.

    plate.npy   |header|  0  0  1  1         a view each: 2 x 2 ranks have these parts of its rows
                       |  0  0  1  1
                       |  2  2  3  3
                       |  2  2  3  3

A checkpoint goes to a file beside, is brought to the device, and then takes the old one's name: whenever the job is killed,
one of the two is whole.  The plate is a torus, and its first wave is an eigenvector of the iteration: the right answer after
any number of steps is known in closed form, and checked.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import sys

import numpy as np
from mpi4py import MPI

TOLERANCE = 1e-12


class Plate:
    """This rank's rectangle of a square plate, with an edge of what its neighbours hold.

    Parameters:
        comm: the ranks.
        size: points along each side.
    """

    def __init__(self, comm: MPI.Intracomm, size: int) -> None:
        self.size = size
        self.grid = comm.Create_cart(MPI.Compute_dims(comm.size, 2), periods=[True, True])
        spans = [(size * at // n, size * (at + 1) // n) for at, n in zip(self.grid.coords, self.grid.dims, strict=True)]
        self.first = [begin for begin, _ in spans]
        self.shape = [end - begin for begin, end in spans]
        self.values = np.zeros([count + 2 for count in self.shape])
        whole, inner = list(self.values.shape), [1, 1]
        self.in_memory = MPI.DOUBLE.Create_subarray(whole, self.shape, inner).Commit()
        self.in_file = MPI.DOUBLE.Create_subarray([size, size], self.shape, self.first).Commit()

    @property
    def own(self) -> np.ndarray:
        return self.values[1:-1, 1:-1]

    def exact(self, steps: int) -> np.ndarray:
        """What `own` is after so many steps."""
        turn = 2 * math.pi / self.size
        x, y = (np.arange(begin, begin + count) for begin, count in zip(self.first, self.shape, strict=True))
        return ((1 + math.cos(turn)) / 2) ** steps * np.sin(turn * x)[:, None] * np.ones_like(y)[None, :]

    def step(self) -> None:
        u = self.values
        for direction, (low, high) in enumerate(((u[1], u[-2]), (u[:, 1], u[:, -2]))):
            before, behind = self.grid.Shift(direction, 1)
            edges = (u[0], u[-1]) if direction == 0 else (u[:, 0], u[:, -1])
            for mine, to, edge, source in ((high, behind, edges[0], before), (low, before, edges[1], behind)):
                edge[:] = self.grid.sendrecv(mine, to, source=source)
        self.own[:] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4

    def save(self, path: str, steps: int) -> None:
        """All of the plate, as an array of NumPy's; the number of steps stands behind it."""
        file = MPI.File.Open(self.grid, f"{path}.new", MPI.MODE_WRONLY | MPI.MODE_CREATE)
        head = header(self.size)
        if self.grid.rank == 0:
            file.Write_at(0, head)
            file.Write_at(len(head) + 8 * self.size**2, np.array([steps]))
        file.Set_view(len(head), MPI.DOUBLE, self.in_file)
        file.Write_at_all(0, [self.values, 1, self.in_memory])
        file.Sync()
        file.Close()
        if self.grid.rank == 0:
            os.replace(f"{path}.new", path)
        self.grid.Barrier()

    def load(self, path: str) -> int:
        """The plate, as any number of ranks have saved it; returns the number of steps."""
        file = MPI.File.Open(self.grid, path, MPI.MODE_RDONLY)
        head, found = header(self.size), bytearray(len(header(self.size)))
        file.Read_at_all(0, found)
        if found != head:
            raise ValueError(f"{path} holds no plate of {self.size} x {self.size}")
        steps = np.zeros(1, int)
        file.Read_at_all(len(head) + 8 * self.size**2, steps)
        file.Set_view(len(head), MPI.DOUBLE, self.in_file)
        file.Read_at_all(0, [self.values, 1, self.in_memory])
        file.Close()
        return int(steps[0])


def header(size: int) -> bytes:
    """The beginning of a .npy file."""
    written = io.BytesIO()
    np.lib.format.write_array_header_1_0(written, {"descr": "<f8", "fortran_order": False, "shape": (size, size)})
    return written.getvalue()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A plate that cools, with checkpoints.")
    parser.add_argument("file", help="name of the .npy file: the run goes on from there if it exists")
    parser.add_argument("--size", type=int, default=400, help="points along each side")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--every", type=int, default=20, help="steps from one checkpoint to the next")
    given = parser.parse_args()
    if given.size < 2 or given.steps < 1 or given.every < 1:
        parser.error("expected --size of 2 or more, --steps and --every of 1 or more")
    return given


def main() -> int:
    comm = MPI.COMM_WORLD
    given = arguments()
    if max(MPI.Compute_dims(comm.size, 2)) > given.size:
        if comm.rank == 0:
            print(f"--size {given.size} is too few points for {comm.size} ranks", file=sys.stderr)
        return 2
    plate, begin = Plate(comm, given.size), 0
    if comm.bcast(os.path.exists(given.file)):
        begin = plate.load(given.file)
    else:
        plate.own[:] = plate.exact(0)
    saved, spent = 0, 0.0
    for step in range(begin + 1, begin + given.steps + 1):
        plate.step()
        if step % given.every == 0 or step == begin + given.steps:
            since = MPI.Wtime()
            plate.save(given.file, step)
            saved, spent = saved + 1, spent + MPI.Wtime() - since
    error = comm.allreduce(float(np.abs(plate.own - plate.exact(begin + given.steps)).max()), op=MPI.MAX)
    correct = error <= TOLERANCE
    if comm.rank == 0:
        print(f"plate of {given.size} x {given.size} on {comm.size} ranks, steps {begin + 1} to {begin + given.steps}")
        print(f"  saved    {saved} times into {given.file}, {1e3 * spent / saved:.1f} ms each, the device included")
        verdict = "correct" if correct else "WRONG"
        print(f"  check    largest difference from the closed form {error:.1e}   {verdict}", flush=True)
    return 0 if correct else 1


if __name__ == "__main__":
    sys.exit(main())
