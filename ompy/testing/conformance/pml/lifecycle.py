"""Communicators come and go, and the end."""

from __future__ import annotations

import time
from typing import Any

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.held import held
from ompy.testing.conformance.pml.messages import complete, neighbours, same
from ompy.testing.conformance.pml.rank import STANDARD, PmlRank

check = Collection()

TURNS = 12
LATE = 0.1  # seconds


@check("open", "delivery")
def the_layer_serves_and_knows_its_name(rank: PmlRank) -> None:
    """The first messages of the job, from each rank to each, itself among them."""
    everyone = range(rank.size)
    sends = [rank.isend(bytearray(rank.content(rank.rank, peer, 0, 40)), peer, 0, STANDARD, rank.world) for peer in everyone]
    for peer in everyone:
        got = bytearray(40)
        complete(rank, "open", f"the first message from rank {peer}", rank.irecv(got, 40, peer, 0, rank.world))
        same(rank, "open", got, rank.content(peer, rank.rank, 0, 40), f"the first message from rank {peer}")
    complete(rank, "open", "the first sends", *sends)


@check("separate", "match")
def communicators_keep_apart(rank: PmlRank) -> None:
    """The same source and tag on communicators that were made one after the other: the last one first."""
    before, after = neighbours(rank)
    made: list[Any] = [rank.comm, *(rank.comm.Dup() for _ in range(TURNS // 2))]
    made += [made[-1].Dup() for _ in range(TURNS // 2)]
    cores = [rank.core_of(handle) for handle in made]
    sends = [rank.isend(bytearray(number.to_bytes(8, "little")), after, 5, STANDARD, core) for number, core in enumerate(cores)]
    rank.meet()
    for number, core in reversed(list(enumerate(cores))):
        got = bytearray(8)
        source, tag = ((before, 5), (-1, 5), (before, -1), (-1, -1))[number % 4]
        complete(rank, "separate", f"a message on communicator {number}", rank.irecv(got, 8, source, tag, core))
        if (found := int.from_bytes(got, "little")) != number:
            raise Breach("separate", f"a message that was sent on communicator {found} was received on communicator {number}")
        if made[number].Iprobe():
            raise Breach("separate", f"a probe sees a message on communicator {number}, whose only one was received")
    complete(rank, "completion", "a send whose message was received", *sends)
    rank.meet()
    # A message that waits on one is nothing to receives on the others.
    number = len(made) - 2
    send = rank.isend(bytearray(b"one"), after, 6, STANDARD, cores[number])
    if not rank.until(lambda: bool(made[number].Iprobe(before, 6))):
        raise Breach("delivery", f"a message on communicator {number} does not come")
    others = [(index, rank.irecv(bytearray(3), 3, before, 6, core)) for index, core in enumerate(cores) if index != number]
    rank.linger()
    for index, receive in others:
        if receive.complete:
            raise Breach("separate", f"a receive on communicator {index} took a message that was sent on communicator {number}")
        receive.cancel()
        complete(rank, "cancel", f"a cancelled receive on communicator {index}", receive)
    complete(
        rank, "separate", f"a message on communicator {number}", send, rank.irecv(bytearray(3), 3, before, 6, cores[number])
    )
    rank.meet()
    # Freed in another order than made, those between go on.
    for handle in made[2::2]:
        handle.Free()
    for number in range(1, len(made), 2):
        got = bytearray(3)
        send = rank.isend(bytearray(b"yes"), after, number, STANDARD, cores[number])
        complete(rank, "free", f"a message on communicator {number}, after others were freed,",
                 rank.irecv(got, 3, before, number, cores[number]), send)  # fmt: skip
        same(rank, "free", got, b"yes", f"a message on communicator {number}")
    for handle in made[1::2]:
        handle.Free()


@check("free", "separate")
def what_nobody_received_goes_with_its_communicator(rank: PmlRank) -> None:
    """Messages that wait on one that is freed are met by no later one; what is posted elsewhere waits on."""
    before, after = neighbours(rank)
    stays = bytearray(6)
    waiting = rank.irecv(stays, 6, before, 44, rank.world)
    for turn in range(TURNS):
        handle = rank.comm.Dup()
        core = rank.core_of(handle)
        if handle.Iprobe():
            raise Breach("free", f"a new communicator has a message before anybody sent one on it (turn {turn})")
        rank.meet()
        send = rank.isend(bytearray(20), after, 3, STANDARD, core)
        if not rank.until(lambda handle=handle: bool(handle.Iprobe(before, 3))):  # type: ignore[misc]
            raise Breach("delivery", "a message does not come")
        if not rank.until(lambda send=send: send.complete):  # type: ignore[misc]
            complete(rank, "completion", "its send", rank.irecv(bytearray(20), 20, before, 3, core))
        send.release()
        rank.meet()
        handle.Free()
        rank.meet()
        if waiting.complete:
            raise Breach("free", "a receive on another communicator is complete when communicators are freed")
        # What the receive waits for is sent when all ranks have looked.
        rank.meet()
    complete(rank, "free", "a receive that was posted before communicators were freed", waiting,
             rank.isend(bytearray(b"stayed"), after, 44, STANDARD, rank.world))  # fmt: skip
    same(rank, "free", stays, b"stayed", "what a receive took that was posted before")


@check("free")
def communicators_leave_nothing_behind(rank: PmlRank) -> None:
    """Descriptors and shared memory, after many that carried messages."""
    before, after = neighbours(rank)

    def use() -> None:
        handle = rank.comm.Dup()
        core = rank.core_of(handle)
        got = bytearray(30_000)
        complete(rank, "free", "a message on a new communicator", rank.irecv(got, len(got), before, 1, core),
                 rank.isend(bytearray(30_000), after, 1, STANDARD, core))  # fmt: skip
        rank.meet()
        handle.Free()

    for _ in range(3):
        use()
    first = held()
    for _ in range(3 * TURNS):
        use()
        rank.alive()
    if (last := held()) != first:
        raise Breach(
            "free", f"(open files, shared mappings) were {first}, and {last} after {3 * TURNS} communicators came and went"
        )


@check("end", "delivery", last=True)
def the_last_messages_arrive(rank: PmlRank) -> None:
    """Every second rank sends and ends; the others come late, and receive."""
    senders = range(0, rank.size, 2)
    lengths = (0, 40, 2000)
    if rank.rank in senders:
        sends = [rank.isend(bytearray(rank.content(rank.rank, peer, number, length)), peer, number, STANDARD, rank.world)
                 for peer in range(1, rank.size, 2) for number, length in enumerate(lengths)]  # fmt: skip
        complete(rank, "completion", "one of the last sends", *sends)
    else:
        time.sleep(LATE)
        for peer in senders:
            for number, length in enumerate(lengths):
                got = bytearray(length)
                words = f"one of the last messages of rank {peer}, {length} bytes,"
                complete(rank, "end", words, rank.irecv(got, length, peer, number, rank.world))
                same(rank, "end", got, rank.content(peer, rank.rank, number, length), words)
    rank.alive()
    rank.MPI.Finalize()
