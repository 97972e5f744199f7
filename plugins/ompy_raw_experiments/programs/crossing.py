"""Neighbours and other pairs that send to each other at once (thesis, figure 3-5): who comes out, and when."""

from __future__ import annotations

from functools import partial

import numpy as np

from ompy_raw_experiments.programs.measuring import Bench


def exchange(bench: Bench, peer: int, words: int) -> bool:
    """Send, then receive; whether the right words came."""
    came = np.full(words, -1, "i")
    bench.world.Send(np.full(words, bench.world.rank, "i"), peer)
    bench.world.Recv(came, peer)
    return bool((came == peer).all())


def main() -> None:
    bench = Bench()
    world, rank = bench.world, bench.world.rank
    for words in bench.options["words"]:
        right: list[bool] = []
        # In round k everybody meets rank ^ k: after 15 rounds each of 16 tiles has met every other.
        rounds = (exchange(bench, rank ^ k, words) for k in range(1, world.size))
        cycles = bench.span(world, partial(right.extend, rounds))
        everybody = world.allreduce(sum(right))
        if rank == 0:
            bench.report(words=words, pairs=everybody // 2, cycles=cycles)


if __name__ == "__main__":
    main()
