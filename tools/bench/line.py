"""How far two ranks' cores are apart, told by a word that they hand to and fro, whatever MPI they run on."""

from __future__ import annotations

import mmap
import os
import tempfile
from time import perf_counter
from typing import Any

LINE = 64
EXCHANGES = 40


class Line:
    """Two cache lines that both ranks of a communicator map.

    Parameters:
        comm: of two ranks on one host.
    """

    def __init__(self, comm: Any) -> None:
        self.rank = comm.Get_rank()
        self.number = 0
        path = None
        if self.rank == 0:
            descriptor, path = tempfile.mkstemp(prefix="bench-line-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
            os.ftruncate(descriptor, mmap.PAGESIZE)
            os.close(descriptor)
        path = comm.bcast(path, root=0)
        with open(path, "r+b") as file:
            self.words = memoryview(mmap.mmap(file.fileno(), mmap.PAGESIZE)).cast("Q")
        comm.Barrier()
        if self.rank == 0:
            os.unlink(path)

    def probe(self) -> float:
        """Seconds from one core to the other and back, the shortest of some; both ranks call it at once."""
        words, mine, others = self.words, self.rank * LINE // 8, (1 - self.rank) * LINE // 8
        shortest = 1.0
        for number in range(self.number + 1, self.number + 1 + EXCHANGES):
            begin = perf_counter()
            if self.rank:
                while words[others] != number:
                    pass
                words[mine] = number
            else:
                words[mine] = number
                while words[others] != number:
                    pass
                shortest = min(shortest, perf_counter() - begin)
        self.number += EXCHANGES
        return shortest
