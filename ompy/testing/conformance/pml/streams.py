"""Checks of a PML, or of the MTL below it: streams of messages in one direction.  Contract: `ompy/mca/pml.pxd`, `mtl.pxd`.

They take too long over an RPI of a chip that is simulated in lockstep.
"""

from __future__ import annotations

from ompy.testing.conformance.check import Collection
from ompy.testing.conformance.pml.messages import complete
from ompy.testing.conformance.pml.rank import STANDARD, PmlRank

# Messages one way, so many to a receive's turn; short ones, and such as are sent when their receive is known.
STREAMS = ((5000, 8), (500, 40_000))
WINDOW = 50

check = Collection()


@check("progress", ranks=2)
def thousands_of_messages_go_one_way(rank: PmlRank) -> None:
    """From each rank to those above it, and nothing the other way: who sends gets room again without a message in return."""
    above = range(rank.rank + 1, rank.size)
    for count, length in STREAMS:
        data = {peer: bytearray(length) for peer in range(rank.size)}
        for first in range(0, count, WINDOW):
            words = f"of {count} messages of {length} bytes, all one way, one of number {first} to {first + WINDOW - 1}"
            receives = [rank.irecv(data[peer], length, peer, 8, rank.world) for peer in range(rank.rank) for _ in range(WINDOW)]
            sends = [rank.isend(data[peer], peer, 8, STANDARD, rank.world) for peer in above for _ in range(WINDOW)]
            complete(rank, "progress", words, *receives, *sends)
            rank.alive()
            if len(rank.lent) > 10 * WINDOW:
                rank.lent.clear()
