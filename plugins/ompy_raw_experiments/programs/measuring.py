"""What every measured program needs: its tile, a common beginning, and a place for its results."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection
from typing import Any, cast

from ompy import MPI
from ompy.mca.selection import chosen_modules

# Between agreeing on a beginning and beginning: longer than the agreement takes anywhere on the chip.
HEAD_START = 20_000


class Bench:
    """A program on the chip.

    Attributes:
        world: its communicator.
        tile: this rank's.
        options: what its experiment asks for, from the command line.
    """

    def __init__(self) -> None:
        path, options = sys.argv[1:]
        self.world = MPI.COMM_WORLD
        self.tile = chosen_modules["rpi"][0].tile
        self.options: dict[str, Any] = json.loads(options)
        self.path = path

    def report(self, **result: Any) -> None:
        """Add a line to the job's results; one rank calls it."""
        with open(self.path, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(result) + "\n")

    def span(self, comm: MPI.Intracomm, action: Callable[[], object]) -> int:
        """Cycles from a beginning that all tiles of `comm` have in common to the end on the last of them."""
        beginning = comm.allreduce(self.tile.clock, op=MPI.MAX) + HEAD_START
        self.tile.advance(beginning - self.tile.clock)
        action()
        return int(comm.allreduce(self.tile.clock, op=MPI.MAX) - beginning)

    def among(self, tiles: Collection[int]) -> MPI.Intracomm | None:
        """A communicator of these tiles, made as the thesis does (5.2); None on the others."""
        mine = self.world.rank in tiles
        part = self.world.Split(0 if mine else 1, self.world.rank)
        return cast(MPI.Intracomm, part) if mine else None
