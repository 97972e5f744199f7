"""What an application's own work costs on a tile: the operations of its inner loop, each at its row of the cost table.

A tile issues one instruction a cycle, in order; a float operation occupies it until its result can be used.  A run through
data misses once a line when more than the cache holds was touched since the last run through them.
"""

from __future__ import annotations

from ompy_raw.costs import COSTS

CACHE_BYTES = 1 << 20  # thesis, 5.2
LINE_BYTES = 32
WORD_BYTES = 4


class Loop:
    """Operations of one pass of an inner loop.

    Parameters:
        loads, stores: words.
        adds, multiplies, divides: of floats.
        instructions: the rest: addresses, counters, branches.
    """

    def __init__(
        self, *, loads: int = 0, stores: int = 0, adds: int = 0, multiplies: int = 0, divides: int = 0, instructions: int = 3
    ) -> None:
        self.cycles = (
            loads * COSTS["load"]
            + stores * COSTS["store"]
            + adds * COSTS["float_add"]
            + multiplies * COSTS["float_multiply"]
            + divides * COSTS["float_divide"]
            + instructions * COSTS["issue"]
        )


def misses(stream_bytes: int, touched_bytes: int) -> int:
    """Cycles lost in a run through `stream_bytes`, when `touched_bytes` were touched since the last one."""
    if touched_bytes <= CACHE_BYTES:
        return 0
    return stream_bytes * COSTS["cache_miss"] // LINE_BYTES
