"""One-sided: an access and what completes it, by rank 0 into the memory of rank 1, which waits in a collective.

`rma_WHAT_FLAVOR:BYTES`, where FLAVOR is how the window was made (allocate, shared, create).  Of `put_column` and the like the
target's elements are every second one.  `fence` and `pscw` (post, start, put, complete, wait) are what both ranks do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mpi4py import MPI

ROOM = 1 << 20
COLUMN = "_column"
PASSIVE = ("put", "get", "accumulate", "fetch_and_op", "compare_and_swap")


def made(flavor: str, comm: MPI.Intracomm) -> MPI.Win:
    """Its memory has been written to: of what never was, the kernel reads one and the same page of zeros."""
    if flavor == "create":
        return MPI.Win.Create(np.ones(ROOM // 8), 8, comm=comm)
    win = (MPI.Win.Allocate if flavor == "allocate" else MPI.Win.Allocate_shared)(ROOM, 8, comm=comm)
    np.frombuffer(win.tomemory())[:] = 1
    return win


def passive(win: MPI.Win, what: str, count: int, target: int) -> Callable[[], object]:
    """An access within an epoch of Lock_all, flushed."""
    data, one, old, same = np.ones(count), np.ones(1, "i8"), np.zeros(1, "i8"), np.zeros(1, "i8")
    there = None
    if what.endswith(COLUMN):
        there = (0, 1, MPI.DOUBLE.Create_vector(count, 1, 2).Commit())
    access: dict[str, Callable[[], object]] = {
        "put": lambda: win.Put(data, target, there),
        "get": lambda: win.Get(data, target, there),
        "accumulate": lambda: win.Accumulate(data, target, there),
        "fetch_and_op": lambda: win.Fetch_and_op(one, old, target),
        "compare_and_swap": lambda: win.Compare_and_swap(one, same, old, target),
    }
    begin = access[what.removesuffix(COLUMN)]

    def flushed() -> None:
        begin()
        win.Flush(target)

    return flushed


def active(win: MPI.Win, what: str, comm: MPI.Intracomm) -> Callable[[], object]:
    """What both ranks do, or rank 0 alone."""
    rank = comm.Get_rank()
    other, data = 1 - rank, np.ones(1)
    group = comm.Get_group().Incl([other])

    def locked() -> None:
        win.Lock(other)
        win.Put(data, other)
        win.Unlock(other)

    def accessing() -> None:
        win.Start(group)
        win.Put(data, other)
        win.Complete()

    def exposing() -> None:
        win.Post(group)
        win.Wait()

    calls: dict[str, Callable[[], object]] = {"lock": locked, "fence": win.Fence, "pscw": exposing if rank else accessing}
    return calls[what]


def with_window(
    comm: MPI.Intracomm,
    name: str,
    nbytes: int,
    batches: Callable[[Callable[[], object]], list[float]],
) -> list[float]:
    """The samples of a row; `batches` takes them of an operation."""
    _, rest = name.split("_", 1)
    what, flavor = rest.rsplit("_", 1)
    win = made(flavor, comm)
    begins = comm.Get_rank() == 0
    if what.removesuffix(COLUMN) in PASSIVE:
        win.Lock_all()
        operation = passive(win, what, max(1, nbytes // 8), 1 - comm.Get_rank())
        samples = batches(operation if begins else nothing)
        win.Unlock_all()
    else:
        operation = active(win, what, comm)
        samples = batches(operation if begins or what != "lock" else nothing)
    win.Free()
    return samples


def nothing() -> None:
    """The target's part."""
