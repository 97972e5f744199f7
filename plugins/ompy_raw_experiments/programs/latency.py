"""Figures 5-2 and 5-3: messages from tile 3 to tile 7, over the network alone and with rMPI, and back and forth."""

from __future__ import annotations

from functools import partial

import numpy as np

from ompy import MPI
from ompy_raw_experiments import bare
from ompy_raw_experiments.programs.measuring import Bench
from ompy_raw_experiments.programs.work import WORD_BYTES, misses

SENDER, RECEIVER = 3, 7
MESSAGE_WORDS = 31


class Pair:
    """Two tiles, and the three ways in which they exchange messages."""

    def __init__(self, bench: Bench, comm: MPI.Intracomm) -> None:
        self.bench = bench
        self.comm = comm
        self.tile = bench.tile

    def over_network(self, words: int) -> None:
        """The program reads and writes the network itself."""
        lost = misses(MESSAGE_WORDS * WORD_BYTES, words * WORD_BYTES)
        self.tile.disable()
        if self.comm.rank == 0:
            bare.send(self.tile, RECEIVER, words, lost)
        else:
            bare.receive(self.tile, words, lost)
        self.tile.enable()

    def with_rmpi(self, words: int) -> None:
        data = np.zeros(words, "i")
        if self.comm.rank == 0:
            self.comm.Send(data, 1)
        else:
            self.comm.Recv(data, 0)

    def ping_pong(self, words: int) -> None:
        data = np.zeros(words, "i")
        if self.comm.rank == 0:
            self.comm.Send(data, 1)
            self.comm.Recv(data, 1)
        else:
            self.comm.Recv(data, 0)
            self.comm.Send(data, 0)


def main() -> None:
    bench = Bench()
    comm = bench.among((SENDER, RECEIVER))
    if comm is None:
        return
    pair = Pair(bench, comm)
    for way in bench.options["ways"]:
        for words in bench.options["words"]:
            cycles = bench.span(comm, partial(getattr(pair, way), words))
            if comm.rank == 0:
                bench.report(way=way, words=words, cycles=cycles)


if __name__ == "__main__":
    main()
