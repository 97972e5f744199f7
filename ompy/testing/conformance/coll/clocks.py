"""Clocks that a component can't stop: words of every rank in memory that all share."""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path
from typing import Any, Protocol

# What a rank tells of a call: that it has begun, that it is back and has looked often whether its part is done, and that it is.
BEGUN, LOOKED, DONE = range(3)
HANDS = 3


class Party(Protocol):
    """A rank that can meet the others without what is under test."""

    rank: int
    size: int

    def meet(self, value: object = None) -> list[Any]: ...


class Clocks:
    """Of each rank how far it is: the number of the last call that has reached each of the hands.

    Made by all ranks together.
    """

    def __init__(self, rank: Party) -> None:
        self.rank = rank.rank
        self.number = 0
        name = ""
        if self.rank == 0:
            # In the job's own folder for temporary files.
            descriptor, name = tempfile.mkstemp()
            os.ftruncate(descriptor, 8 * HANDS * rank.size)
            os.close(descriptor)
        path = Path(rank.meet(name)[0])
        with path.open("r+b") as stream:
            words = memoryview(mmap.mmap(stream.fileno(), 0)).cast("Q")
        self.hands = [words[hand * rank.size : (hand + 1) * rank.size] for hand in range(HANDS)]
        rank.meet()
        if self.rank == 0:
            path.unlink()

    def next(self) -> None:
        """Another call, the same on every rank."""
        self.number += 1

    def strike(self, hand: int) -> None:
        self.hands[hand][self.rank] = self.number

    def all_but(self, late: int, hand: int) -> bool:
        """Whether all ranks but one are so far."""
        return all(number >= self.number for rank, number in enumerate(self.hands[hand]) if rank != late)

    def missing(self, hand: int) -> set[int]:
        """The ranks that are not so far."""
        return {rank for rank, number in enumerate(self.hands[hand]) if number < self.number}
