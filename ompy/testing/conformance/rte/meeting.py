"""What ranks publish, and how they meet."""

from __future__ import annotations

import time

from ompy.core.errors import MPIError
from ompy.core.progress_source import ProgressSource, register_source, unregister_source
from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.coll.clocks import BEGUN, LOOKED, Clocks
from ompy.testing.conformance.rte.rank import PAUSE, RteRank

check = Collection()

LENGTHS = (0, 1, 256, 1000, 1023, 1024, 5000, 100_003)
ROUNDS = 3
# Seconds in which ranks that do not wait for a late one come out.
CHANCE = 0.05


def content(rank: int, turn: int, length: int) -> bytes:
    """Every value of a byte, and different for every rank."""
    return bytes((index + 31 * rank + 7 * turn) % 256 for index in range(length))


def compare(rank: RteRank, key: str, turn: int, length: int, clause: str) -> None:
    for peer in range(rank.size):
        try:
            got = rank.rte.get(peer, key)
        except MPIError as error:
            raise Breach(clause, f"what rank {peer} has published under {key} is not there: {error}") from None
        if got != content(peer, turn, length):
            raise Breach(clause, f"rank {peer} has published {length} bytes under {key}; {len(got)} came, or others")


@check("publish", "again")
def what_was_put_is_there_after_a_fence(rank: RteRank) -> None:
    """All lengths at once; then with one fence each, and what was there before still is."""
    for length in LENGTHS:
        rank.rte.put(f"kit.length-{length}", content(rank.rank, 0, length))
    rank.fence()
    for length in LENGTHS:
        compare(rank, f"kit.length-{length}", 0, length, "publish")
    for turn in range(ROUNDS):
        rank.alive("again")
        rank.fence(**{f"kit.turn_{turn}": content(rank.rank, turn, 40)})
        for before in range(turn + 1):
            compare(rank, f"kit.turn_{before}", before, 40, "again")
    rank.fence()
    compare(rank, f"kit.length-{LENGTHS[-1]}", 0, LENGTHS[-1], "again")


@check("publish")
def ranks_publish_different_things(rank: RteRank) -> None:
    """One of them nothing."""
    if rank.rank:
        rank.rte.put(f"kit.of{rank.rank}", content(rank.rank, 5, rank.rank))
    rank.fence()
    for peer in range(1, rank.size):
        if rank.rte.get(peer, f"kit.of{peer}") != content(peer, 5, peer):
            raise Breach("publish", f"what rank {peer} alone has published came as something else")


@check("missing")
def what_is_not_there_is_an_error(rank: RteRank) -> None:
    """Under a key, and of a rank, that there is none of."""
    rank.fence(kit=b"there")
    for peer, key in ((0, "kit.nowhere"), (rank.size - 1, "ki"), (rank.size, "kit"), (-1, "kit")):
        try:
            got = rank.rte.get(peer, key)
        except MPIError:
            continue
        raise Breach("missing", f"rank {peer} of {rank.size} has published nothing under {key!r}, and {got!r} is there")
    rank.meet()


@check("fence", ranks=2)
def nobody_comes_out_before_everybody_is_in(rank: RteRank) -> None:
    """Each rank late in turn."""
    if rank.size == 1:
        return
    clocks = Clocks(rank)
    for turn in range(ROUNDS * rank.size):
        late = turn % rank.size
        rank.alive()
        clocks.next()
        if late == rank.rank:
            rank.until(lambda late=late: clocks.all_but(late, BEGUN))  # type: ignore[misc]
            end = time.monotonic() + CHANCE
            while time.monotonic() < end and not clocks.all_but(late, LOOKED):
                time.sleep(PAUSE)
        clocks.strike(BEGUN)
        rank.rte.commit_and_fence()
        if missing := clocks.missing(BEGUN):
            raise Breach("fence", f"it returned before rank {min(missing)} was in it")
        clocks.strike(LOOKED)
        rank.meet()


class Counted(ProgressSource):
    """Notes that the engine goes on."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks

    def progress(self) -> int:
        self.clocks.strike(BEGUN)
        return 0

    def descriptor(self) -> int:
        return -1

    def may_sleep(self) -> bool:
        return True


@check("progress", ranks=2)
def the_engine_goes_on_in_a_fence(rank: RteRank) -> None:
    """The late one comes when the engines of all others have gone on."""
    if rank.size == 1:
        return
    clocks = Clocks(rank)
    rank.fence()
    for late in range(rank.size):
        rank.alive()
        clocks.next()
        rank.meet()
        if late == rank.rank:
            went_on = rank.until(lambda late=late: clocks.all_but(late, BEGUN))  # type: ignore[misc]
            rank.rte.commit_and_fence()
            if not went_on:
                others = sorted(clocks.missing(BEGUN) - {late})
                raise Breach("progress", f"for {rank.patience:g} s the engine of ranks {others} did not go on in the fence")
        else:
            source = Counted(clocks)
            register_source(source)
            try:
                rank.rte.commit_and_fence()
            finally:
                unregister_source(source)
        rank.meet()
