"""What rank 0 waits for while rank 1 is elsewhere for a quarter of a second: in NumPy, or asleep.

`busy_WHAT_FLAVOR:BYTES`: an access and its flush, into a window as in `windows.py`, or a dynamic one.  `busy_isend:BYTES`: a
message whose receive is posted.  `busy_iallreduce:BYTES`: a sum that both have begun.  `asleep_...`: the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from mpi4py import MPI
from windows import ROOM, made

SECONDS = 0.25
HEAD_START = 0.02
SAMPLES = 8


def away(asleep: bool) -> None:
    """No call of MPI's."""
    end = time.perf_counter() + SECONDS
    numbers = np.ones(100_000)
    while not asleep and time.perf_counter() < end:
        np.sqrt(numbers, out=numbers)
    time.sleep(max(0.0, end - time.perf_counter()))


def sampled(
    comm: MPI.Intracomm, begin: Callable[[], list[MPI.Request]], finish: Callable[[], object], asleep: bool
) -> list[float]:
    """Seconds of `finish` at rank 0.

    Parameters:
        begin: what both do before rank 1 goes away; the requests are waited for in the end.
    """
    samples: list[float] = []
    for _ in range(SAMPLES):
        comm.Barrier()
        requests = begin()
        if comm.Get_rank():
            away(asleep)
        else:
            time.sleep(HEAD_START)
            start = time.perf_counter()
            finish()
            samples.append(time.perf_counter() - start)
        MPI.Request.Waitall(requests)
    everywhere: list[float] = comm.bcast(samples, root=0)
    return everywhere


def with_busy_peer(comm: MPI.Intracomm, name: str, nbytes: int) -> list[float]:
    """The samples of a row."""
    how, what = name.split("_", 1)
    rank, asleep = comm.Get_rank(), how == "asleep"
    count = max(1, nbytes // 8)
    mine, theirs = np.ones(count), np.zeros(count)
    if what == "isend":
        return sampled(comm, lambda: [comm.Irecv(theirs, 0)] if rank else [], lambda: comm.Send(mine, 1), asleep)
    if what == "iallreduce":
        under_way: list[MPI.Request] = []

        def begin() -> list[MPI.Request]:
            under_way[:] = [comm.Iallreduce(mine, theirs)]
            return under_way if rank else []

        return sampled(comm, begin, lambda: under_way[0].Wait(), asleep)
    access, flavor = what.rsplit("_", 1)
    win, place, _memory = opened(comm, flavor)
    one, old = np.ones(1, "i8"), np.zeros(1, "i8")
    accesses: dict[str, Callable[[], object]] = {
        "put": lambda: win.Put(mine, 1, place),
        "get": lambda: win.Get(theirs, 1, place),
        "accumulate": lambda: win.Accumulate(mine, 1, place),
        "fetch_and_op": lambda: win.Fetch_and_op(one, old, 1, place),
    }

    def flushed() -> None:
        accesses[access]()
        win.Flush(1)

    win.Lock_all()
    samples = sampled(comm, list, flushed, asleep)
    win.Unlock_all()
    win.Free()
    return samples


def opened(comm: MPI.Intracomm, flavor: str) -> tuple[MPI.Win, int, object]:
    """A window, where rank 1's memory is in it, and this rank's memory."""
    if flavor != "dynamic":
        return made(flavor, comm), 0, None
    win, memory = MPI.Win.Create_dynamic(comm=comm), np.zeros(ROOM // 8)
    win.Attach(memory)
    return win, comm.bcast(MPI.Get_address(memory), root=1), memory
