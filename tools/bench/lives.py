"""The whole life of what a program makes: communicators, windows and datatypes, made and freed again, and processes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from mpi4py import MPI


def lives(comm: MPI.Intracomm) -> dict[str, Callable[[], object]]:
    """What is made and freed, by the name of its row."""
    rank, size = comm.Get_rank(), comm.Get_size()
    group = comm.Get_group()
    dims = MPI.Compute_dims(size, 2)
    mine = MPI.COMM_SELF

    def cart_sub() -> None:
        grid = comm.Create_cart(dims)
        row = grid.Sub([False, True])
        row.Free()
        grid.Free()

    return {
        "comm_dup": lambda: comm.Dup().Free(),
        "comm_dup_self": lambda: mine.Dup().Free(),
        "comm_split": lambda: comm.Split(rank % 2, rank).Free(),
        "comm_create_group": lambda: comm.Create_group(group).Free(),
        "comm_cart_sub": cart_sub,
        "win_allocate": lambda: MPI.Win.Allocate(4096, 8, comm=comm).Free(),
        "type_subarray": lambda: MPI.DOUBLE.Create_subarray([64, 64], [32, 16], [8, 8]).Commit().Free(),
        "type_vector": lambda: MPI.DOUBLE.Create_vector(64, 1, 64).Commit().Free(),
    }


def spawned(count: int) -> Callable[[], object]:
    """So many processes are started, meet this one and leave it."""
    program = str(Path(__file__).with_name("child.py"))
    return lambda: MPI.COMM_SELF.Spawn(sys.executable, [program], count).Disconnect()
