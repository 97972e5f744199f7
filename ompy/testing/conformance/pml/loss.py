"""Contact with a rank ends, as a transport or the launcher would say: what that ends, and what it leaves alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.core.errors import ERR_PROC_FAILED, MPIError
from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.pml.messages import complete, same
from ompy.testing.conformance.pml.rank import STANDARD, SYNCHRONOUS, PmlRank

if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy.core.request import Request

check = Collection()

ANY = -1
LONG = 1_000_001  # bytes: more than is sent before its receive is known
EARLY, NAMED, WILD, UNMATCHED, LONG_ONE, OTHERS, LATER = range(60, 67)  # tags
WORDS = "the kit says so"


def ends(rank: PmlRank, words: str, request: Request) -> None:
    """With the loss as its error."""
    if not rank.until(lambda: request.complete):
        raise Breach("loss", f"{words} waits on after the loss")
    if request.error is None:
        raise Breach("loss", f"{words} completes after the loss as if all were well")
    of_the_loss(words, request.error)
    request.release()


def of_the_loss(words: str, error: BaseException) -> None:
    if not isinstance(error, MPIError) or error.code != ERR_PROC_FAILED or WORDS not in str(error):
        raise Breach("loss", f"{words} ends with {error!r}, not with the process's `failure`")


def ends_at_once(rank: PmlRank, words: str, begin: Callable[[], Request]) -> None:
    """What is begun afterwards raises, or ends soon."""
    try:
        request = begin()
    except MPIError as error:
        of_the_loss(words, error)
    else:
        ends(rank, words, request)


def raises(words: str, probe: Callable[[], object]) -> None:
    try:
        found = probe()
    except MPIError as error:
        of_the_loss(words, error)
    else:
        raise Breach("loss", f"{words} says {found}, and does not raise the process's `failure`")


def receives_or_not(rank: PmlRank, lost: int, early: bytes) -> None:
    """What had come before the loss comes whole, or not at all."""
    words, got = "a receive of what had come before the loss", bytearray(len(early))
    try:
        request = rank.irecv(got, len(got), lost, EARLY, rank.world)
    except MPIError as error:
        of_the_loss(words, error)
        return
    if not rank.until(lambda: request.complete):
        raise Breach("loss", f"{words} waits on")
    if request.error is None:
        same(rank, "loss", got, early, "a message that had come before the loss")
    else:
        of_the_loss(words, request.error)
    request.release()


@check("loss", ranks=2, last=True)
def what_waits_for_a_lost_rank_ends(rank: PmlRank) -> None:
    """The last rank is lost to the others, who go on: it has sent one message, and takes none."""
    lost, world = rank.size - 1, rank.world
    early = rank.content(lost, 0, 0, 40)
    if rank.rank == lost:
        sends = [rank.isend(bytearray(early), peer, EARLY, STANDARD, world) for peer in range(lost)]
        complete(rank, "delivery", "a send before the loss", *sends)
        for _ in range(3):
            rank.meet()
        return
    proc = world.group.member(lost)
    if not rank.until(lambda: bool(rank.comm.Iprobe(lost, EARLY))):
        raise Breach("delivery", "a message before the loss does not come")
    before, after = (rank.rank - 1) % lost, (rank.rank + 1) % lost
    waiting = {
        "a receive": rank.irecv(bytearray(8), 8, lost, NAMED, world),
        "a receive of any tag": rank.irecv(bytearray(8), 8, lost, LATER, world),
        "a synchronous send": rank.isend(bytearray(8), lost, UNMATCHED, SYNCHRONOUS, world),
    }
    long_one = rank.isend(bytearray(LONG), lost, LONG_ONE, STANDARD, world)
    named, wild = bytearray(8), bytearray(8)
    others = {"a receive from another rank": rank.irecv(named, 8, before, OTHERS, world)}
    if lost > 1:
        others["a receive from any rank"] = rank.irecv(wild, 8, ANY, WILD, world)
    rank.meet()
    rank.linger()
    if early_ones := [words for words, request in (waiting | others).items() if request.complete]:
        raise Breach("completion", f"{early_ones[0]} is complete before anything was sent for it")
    for _ in range(2):  # a transport says so, and then the launcher
        rank.pml.peer_lost(proc, WORDS)
    if proc.failure is None:
        raise Breach("loss", "after `peer_lost` the process has no `failure`")
    for words, request in waiting.items():
        ends(rank, words, request)
    if not rank.until(lambda: long_one.complete):
        raise Breach("loss", "a long send waits on after the loss")
    rank.alive()
    ends_at_once(rank, "a later send", lambda: rank.isend(bytearray(8), lost, LATER, SYNCHRONOUS, world))
    ends_at_once(rank, "a later receive", lambda: rank.irecv(bytearray(8), 8, lost, LATER, world))
    raises("a later probe", lambda: rank.comm.Probe(lost, LATER))
    raises("a later Iprobe", lambda: rank.comm.Iprobe(lost, LATER))
    raises("a later Improbe", lambda: rank.comm.Improbe(lost, LATER))
    rank.linger()
    if hurt := [words for words, request in others.items() if request.complete]:
        raise Breach("loss", f"{hurt[0]} is over with the loss of rank {lost}: {others[hurt[0]].error}")
    receives_or_not(rank, lost, early)
    rank.meet()
    tags = (OTHERS, WILD) if lost > 1 else (OTHERS,)
    sends = [rank.isend(bytearray(b"go on on"), after, tag, STANDARD, world) for tag in tags]
    for words, request in others.items():
        complete(rank, "loss", f"{words}, after the loss of rank {lost},", request)
    complete(rank, "loss", "a send to another rank", *sends)
    same(rank, "loss", named, b"go on on", "a message of another rank")
    rank.meet()
