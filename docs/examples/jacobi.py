#!/usr/bin/env python3
"""Jacobi relaxation on a square plate, rows dealt out in blocks, edge rows exchanged at every step.

    ompyrun -n 4 --mpi4py python jacobi.py --size 3200 --steps 100 --picture plate.png

Every inner point becomes the mean of its four neighbours; the edge stays as it is.  The plate starts as

    u = x^2 - y^2  +  sum of  amplitude * sin(p pi x) * sin(q pi y)        x, y in [0, 1], h = 1 / (size - 1)

whose first part is a fixed point of the iteration (its discrete Laplacian is zero), and whose waves are eigenvectors:
one step multiplies each by (cos(p pi h) + cos(q pi h)) / 2.  So the right answer after any number of steps is known in
closed form, and every rank checks every point of its block against it.

    rank 0   | edge row (stays)  |          Each rank holds its rows and one halo row on either side:
             | own rows          |
             | halo        <-----+--- first own row of rank 1
    rank 1   | halo        <-----+--- last own row of rank 0
             | own rows          |
"""

from __future__ import annotations

import argparse
import math
import struct
import sys
import zlib
from collections.abc import Callable
from types import TracebackType

import numpy as np
from mpi4py import MPI

# Waves on the plate: p, q, amplitude.  The shorter the wave, the sooner the relaxation smooths it away.
WAVES = ((3, 2, 0.3), (40, 25, 0.3), (160, 220, 0.4))
TOLERANCE = 1e-11
PICTURE_SIDE = 800  # pixels at most


def plate(rows: np.ndarray, size: int, steps: int) -> np.ndarray:
    """The given rows of the plate after so many steps, in closed form."""
    h = 1.0 / (size - 1)
    x = rows[:, None] * h
    y = np.arange(size)[None, :] * h
    u = x * x - y * y
    for p, q, amplitude in WAVES:
        decay = ((math.cos(p * math.pi * h) + math.cos(q * math.pi * h)) / 2) ** steps
        u += amplitude * decay * np.sin(p * math.pi * x) * np.sin(q * math.pi * y)
    return u


class Progress:
    """A progress bar where `rich` and a terminal are there, a line now and then elsewhere; silent on ranks other than 0."""

    def __init__(self, steps: int, shown: bool) -> None:
        self.steps = steps
        self.shown = shown
        self.bar = None
        self.printed = 0
        if shown:
            try:
                from rich.console import Console
                from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
            except ImportError:
                return
            console = Console()
            if console.is_terminal:
                columns = (TextColumn("relaxing"), BarColumn(), TextColumn("{task.completed}/{task.total} steps"))
                self.bar = Progress(*columns, TimeElapsedColumn(), TextColumn("{task.description}"), console=console)

    def __enter__(self) -> Callable[[int, float], None]:
        if self.bar is not None:
            self.bar.start()
            self.task = self.bar.add_task("", total=self.steps)
        return self.update

    def update(self, step: int, change: float) -> None:
        """`change`: the largest change of any point in this step, over all ranks."""
        if not self.shown:
            return
        if self.bar is not None:
            self.bar.update(self.task, completed=step, description=f"largest change {change:.2e}")
        elif step * 10 // self.steps > self.printed:
            self.printed = step * 10 // self.steps
            print(f"  step {step:5d} of {self.steps}   largest change {change:.3e}", flush=True)

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.bar is not None:
            self.bar.stop()


def write_png(path: str, values: np.ndarray) -> None:
    """A picture of a 2-d array: blue below the middle of its range, red above."""
    low, high = float(values.min()), float(values.max())
    place = (values - low) / ((high - low) or 1.0) * 2 - 1
    fade = 1 - np.abs(place)
    colours = np.stack([np.where(place > 0, 1.0, fade), fade, np.where(place < 0, 1.0, fade)], axis=-1)
    pixels = (colours * 255).astype("u1")
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 2, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Jacobi relaxation on a square plate.")
    parser.add_argument("--size", type=int, default=3200, help="points along each side")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--picture", metavar="FILE.png", help="save the plate at the end")
    given = parser.parse_args()
    if given.size < 3 or given.steps < 1:
        parser.error("expected --size of 3 or more and --steps of 1 or more")
    return given


def main() -> int:
    comm = MPI.COMM_WORLD
    given = arguments()
    size, steps = given.size, given.steps
    if comm.size > size - 2:
        if comm.rank == 0:
            print(f"--size {size} has {size - 2} inner rows, too few for {comm.size} ranks", file=sys.stderr)
        return 2

    # Inner rows 1 .. size - 2 are dealt out; the halo rows of the first and last rank are the plate's edge.
    first = 1 + (size - 2) * comm.rank // comm.size
    end = 1 + (size - 2) * (comm.rank + 1) // comm.size
    above = comm.rank - 1 if comm.rank > 0 else MPI.PROC_NULL
    below = comm.rank + 1 if comm.rank < comm.size - 1 else MPI.PROC_NULL
    old = plate(np.arange(first - 1, end + 1), size, 0)
    new = old.copy()
    looked_at = max(1, steps // 50)

    comm.Barrier()
    begun = MPI.Wtime()
    with Progress(steps, comm.rank == 0) as progress:
        for step in range(1, steps + 1):
            comm.Sendrecv(old[1], above, 0, old[-1], below, 0)
            comm.Sendrecv(old[-2], below, 1, old[0], above, 1)
            inner = new[1:-1, 1:-1]
            np.add(old[:-2, 1:-1], old[2:, 1:-1], out=inner)
            inner += old[1:-1, :-2]
            inner += old[1:-1, 2:]
            inner *= 0.25
            if step % looked_at == 0 or step == steps:
                change = np.array(np.abs(inner - old[1:-1, 1:-1]).max())
                comm.Allreduce(MPI.IN_PLACE, change, op=MPI.MAX)
                progress(step, float(change))
            old, new = new, old
    elapsed = MPI.Wtime() - begun

    own = old[1:-1]
    error = np.array(np.abs(own - plate(np.arange(first, end), size, steps)).max())
    comm.Allreduce(MPI.IN_PLACE, error, op=MPI.MAX)
    correct = float(error) <= TOLERANCE

    if given.picture:
        stride = -(-size // PICTURE_SIDE)
        pieces = comm.gather(own[(-first) % stride :: stride, ::stride], root=0)
        if comm.rank == 0:
            write_png(given.picture, np.concatenate(pieces))
    if comm.rank == 0:
        updates = (size - 2) ** 2 * steps
        print(f"plate of {size} x {size}, {steps} steps on {comm.size} ranks")
        print(f"  check    largest difference from the closed form {float(error):.1e}, allowed {TOLERANCE:.0e}")
        print(f"  speed    {updates / elapsed / 1e6:.0f} million points a second")
        print(f"  time     {elapsed:.2f} s   {'correct' if correct else 'WRONG'}", flush=True)
        if given.picture:
            print(f"  picture  {given.picture}", flush=True)
    return 0 if correct else 1


if __name__ == "__main__":
    sys.exit(main())
