"""Contact that was lost, or given up, and is made anew."""

from __future__ import annotations

import re

from ompy.core.errors import MPIError
from ompy.mca import btl as contract
from ompy.mca.btl import BACK_PRESSURE, FREE_TAGS
from ompy.testing.conformance.btl.messages import everybody
from ompy.testing.conformance.btl.rank import BtlRank
from ompy.testing.conformance.btl.remote_memory import require
from ompy.testing.conformance.check import Breach, Collection

check = Collection()

WORDS = re.compile(rb"\d+ \d+ \d+")  # rank, turn, attempt
TURNS = 4
# Attempts of the rank that has renewed, at each of which all tell one another how far they are, before others do so too; and
# attempts at all.
HESITATION = 50
ATTEMPTS = 2000
BETWEEN = 20  # looks


@check("renewal", "delivery", needs="renewal", ranks=2, abroad=True, last=True)
def contact_is_made_anew(rank: BtlRank) -> None:
    """Ranks in turn make contact with all others anew; then everybody sends until all have heard from each other.

    Where that breaks contact for another rank, it makes contact anew too.  What was sent may be lost, but none comes twice.
    """
    require(rank, contract.RENEWAL, "renewal")
    rank.transfer(everybody(rank, [100, 24]))
    rank.meet()
    rank.bereave()
    others = [peer for peer in rank.peers if peer != rank.rank]
    heard: set[bytes] = set()
    for turn in range(TURNS):
        if turn % rank.size == rank.rank:
            for peer in others:
                rank.btl.renew(rank.peers[peer])
        broken: set[int] = set()
        for attempt in range(ATTEMPTS):
            for peer in others:
                if peer in broken and (turn % rank.size == rank.rank or attempt % HESITATION == HESITATION - 1):
                    rank.btl.renew(rank.peers[peer])
                    broken.discard(peer)
                elif peer not in broken and not sent(rank, peer, b"%d %d %d" % (rank.rank, turn, attempt)):
                    broken.add(peer)
            for _ in range(BETWEEN):
                rank.step()
            broken |= {peer for peer, _ in rank.reported}
            rank.reported.clear()
            heard_now = heard_of(rank, heard, turn)
            if all(rank.exchange(len(heard_now) == len(others))):
                break
        else:
            raise Breach("renewal", f"rank {turn % rank.size} made contact anew; heard of were {sorted(heard_now)} of {others}")
    rank.afterthoughts()
    heard_of(rank, heard, -1)


def sent(rank: BtlRank, peer: int, data: bytes) -> bool:
    """Whether there was room, or may yet be; False: contact is broken."""
    try:
        return rank.btl.post(rank.peers[peer], data, FREE_TAGS[0]) in (contract.TAKEN, BACK_PRESSURE)
    except MPIError:
        return False


def heard_of(rank: BtlRank, heard: set[bytes], turn: int) -> set[int]:
    """The ranks of which something has come that they sent in this turn, or a later one."""
    for arrival in rank.arrived:
        if arrival.data in heard:
            raise Breach("delivery", f"{arrival.data!r} (rank, turn, attempt) came twice")
        if not WORDS.fullmatch(arrival.data):
            raise Breach("delivery", f"{len(arrival.data)} bytes came again, which had arrived before contact was made anew")
        heard.add(arrival.data)
    rank.arrived.clear()
    told = [tuple(map(int, data.split())) for data in heard]
    return {source for source, when, _ in told if when >= turn}
