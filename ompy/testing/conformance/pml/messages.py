"""What arrives: every length, in gapped memory, longer than its receive, into memory that is made for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.core.memory import address_of
from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.pml.rank import READY, STANDARD, SYNCHRONOUS, PmlRank

if TYPE_CHECKING:
    from ompy.core.request import Request
    from ompy.core.typemap import Typemap

check = Collection()

UNTOUCHED = 0x5A
GUARDED = 16
TRUNCATED = 15  # the error class ERR_TRUNCATE
# Around powers of two, where limits are, with room for a header before them; and long ones.
POWERS = (256, 1024, 4096, 8192, 16_384, 32_768, 65_536)
LENGTHS = (*range(10), *(power + more for power in POWERS for more in range(-72, 3)), 100_003, 300_000, 1_000_001)
MODES = (STANDARD, SYNCHRONOUS, READY)
FLOOD = 1500


def same(rank: PmlRank, clause: str, got: bytes | bytearray | memoryview, wanted: bytes, words: str) -> None:
    """Bytes as they should be; else the first that is not."""
    if bytes(got) != wanted:
        at = next(
            (at for at, (one, other) in enumerate(zip(got, wanted, strict=False)) if one != other), min(len(got), len(wanted))
        )
        raise Breach(clause, f"{words}: {len(got)} bytes, of which {len(wanted)} are due, and other ones from byte {at} on")


def complete(rank: PmlRank, clause: str, words: str, *requests: Request | None) -> None:
    """All of these complete, without an error; then they are let go of."""
    pending = [request for request in requests if request is not None]
    if not rank.until(lambda: all(request.complete for request in pending)):
        raise Breach(clause, f"{words} does not complete", symptom=True)
    for request in pending:
        if request.error is not None:
            raise Breach(clause, f"{words} failed: {request.error}")
        request.release()


def expect(clause: str, words: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise Breach(clause, f"{words}: {found}, where {wanted} is due")


def neighbours(rank: PmlRank) -> tuple[int, int]:
    """Whom this rank receives from, and whom it sends to: a ring, in which one rank sends to itself."""
    return (rank.rank - 1) % rank.size, (rank.rank + 1) % rank.size


@check("delivery", "completion")
def every_length_arrives(rank: PmlRank) -> None:
    """In each mode in turn, where the receive is posted and where it comes later."""
    before, after = neighbours(rank)
    world = rank.world
    for number, length in enumerate(LENGTHS):
        mode = MODES[number % len(MODES)]
        early = mode == READY or number % 2 == 0
        words = f"a message of {length} bytes in mode {mode}, {'with' if early else 'before'} its receive"
        got, sent = bytearray([UNTOUCHED]) * (length + GUARDED), bytearray(rank.content(rank.rank, after, number, length))
        receive = rank.irecv(got, length, before, number, world) if early else None
        if mode == READY:
            rank.meet()
        send = rank.isend(sent, after, number, mode, world)
        receive = receive or rank.irecv(got, length, before, number, world)
        complete(rank, "delivery", words, receive, send)
        wanted = rank.content(before, rank.rank, number, length) + bytes([UNTOUCHED]) * GUARDED
        same(rank, "delivery", got, wanted, words)
        rank.alive()


@check("order", "delivery")
def long_and_short_messages_keep_their_order(rank: PmlRank) -> None:
    """From every rank to every rank with one tag; receives for any tag and for this one take turns."""
    shared = rank.common_random("order")
    lengths = [shared.choice((8, 8, 100, 5000, 70_000, 250_000)) for _ in range(40)]
    everyone = range(rank.size)
    sends = []
    contents = {
        (peer, number): bytearray(number.to_bytes(8, "little") + rank.content(rank.rank, peer, number, length)[8:])
        for number, length in enumerate(lengths)
        for peer in everyone
    }
    for (peer, _), data in contents.items():
        sends.append(rank.isend(data, peer, 1, STANDARD, rank.world))
    for number in range(len(lengths)):
        for peer in everyone:
            got = bytearray(max(lengths))
            receive = rank.irecv(got, len(got), peer, -1 if number % 2 else 1, rank.world)
            if not rank.until(lambda receive=receive: receive.complete):  # type: ignore[misc]
                raise Breach("delivery", f"message {number} of rank {peer}, {lengths[number]} bytes, does not come")
            found = int.from_bytes(got[:8], "little")
            if found != number:
                raise Breach("order", f"message {found} of rank {peer} was received where {number} was due")
            wanted = number.to_bytes(8, "little") + rank.content(peer, rank.rank, number, lengths[number])[8:]
            same(rank, "delivery", got[: receive.result[4]], wanted, f"message {number} of rank {peer}")
            receive.release()
        rank.alive()
    complete(rank, "completion", "a send whose message was received", *sends)


@check("unexpected", "order", "delivery")
def a_flood_of_unexpected_messages_is_kept(rank: PmlRank) -> None:
    """Everybody sends before anybody receives; by tags from the last to the first, and of one tag in order."""
    before, after = neighbours(rank)
    lengths = [(number * 37) % 900 if number % 50 else 9000 for number in range(FLOOD)]
    contents = [bytearray(rank.content(rank.rank, after, number, length)) for number, length in enumerate(lengths)]
    # Before anything is sent: while a rank computes, what it has to send waits.
    theirs = [rank.content(before, rank.rank, number, length) for number, length in enumerate(lengths)]
    tags = [number if number % 3 else 0 for number in range(FLOOD)]
    sends = [rank.isend(data, after, tag, STANDARD, rank.world) for data, tag in zip(contents, tags, strict=True)]
    rank.meet()
    late = [number for number in reversed(range(FLOOD)) if tags[number]]
    for number in late + [number for number in range(FLOOD) if not tags[number]]:
        got = bytearray(max(lengths))
        words = f"of {FLOOD} messages that nobody waited for number {number}, tag {tags[number]},"
        receive = rank.irecv(got, len(got), before, tags[number], rank.world)
        if not rank.until(lambda receive=receive: receive.complete):  # type: ignore[misc]
            raise Breach("unexpected", f"{words} is gone")
        nbytes, wanted = receive.result[4], theirs[number]
        receive.release()
        found = bytes(got[:nbytes])
        if found in theirs and found != wanted:
            clause = "order" if tags[theirs.index(found)] == tags[number] else "match"
            raise Breach(clause, f"{words} was due, and number {theirs.index(found)} came")
        same(rank, "delivery", got[: len(wanted)], wanted, words)
        expect("status", f"bytes that {words} is said to have", nbytes, len(wanted))
        if number % 50 == 0:
            rank.alive()
    complete(rank, "completion", "a send whose message was received", *sends)


def layouts(rank: PmlRank) -> list[tuple[str, Typemap]]:
    """Types of six bytes or more with gaps, the same number of bytes in an element."""
    byte = rank.bytes
    return [
        ("without gaps", byte.create_contiguous(6)),
        ("two blocks of three, five apart", byte.create_vector(2, 3, 5)),
        ("blocks out of order", byte.create_indexed([1, 3, 2], [9, 0, 5])),
        ("gaps before and behind", byte.create_indexed([4, 2], [3, 8]).create_resized(-2, 17)),
    ]


@check("layout", "delivery")
def typed_memory_arrives(rank: PmlRank) -> None:
    """Each type on either side, of few elements and of many; gaps stay as they are."""
    before, after = neighbours(rank)
    for number, (name, outgoing) in enumerate(layouts(rank)):
        for other, incoming in layouts(rank):
            for count in (0, 1, 9, 700, 20_000):
                words = f"{count} elements, {name} at the sender and {other} at the receiver"
                margin = 32
                sent = bytearray(rank.content(rank.rank, after, number, outgoing.extent * count + 2 * margin))
                got = bytearray([UNTOUCHED]) * (incoming.extent * count + 2 * margin)
                receive = rank.pml.irecv(address_of(got) + margin, count, incoming, before, 3, rank.world)
                send = rank.pml.isend(address_of(sent) + margin, count, outgoing, after, 3, STANDARD, rank.world)
                complete(rank, "layout", words, receive, send)
                theirs = rank.content(before, rank.rank, number, outgoing.extent * count + 2 * margin)
                data = packed(theirs, margin, outgoing, count)
                wanted = unpacked(data, len(got), margin, incoming, count)
                same(rank, "layout", got, wanted, words)
            rank.alive()


def places(typemap: Typemap) -> list[int]:
    """Where an element's bytes are, in the order in which they are sent; of the types above."""
    known = {(6, 6): range(6), (6, 8): (0, 1, 2, 5, 6, 7), (6, 10): (9, 0, 1, 2, 5, 6), (6, 17): (3, 4, 5, 6, 8, 9)}
    return list(known[typemap.size, typemap.extent])


def packed(memory: bytes, margin: int, typemap: Typemap, count: int) -> bytes:
    inner = places(typemap)
    return bytes(memory[margin + index * typemap.extent + place] for index in range(count) for place in inner)


def unpacked(data: bytes, size: int, margin: int, typemap: Typemap, count: int) -> bytes:
    memory, inner = bytearray([UNTOUCHED]) * size, places(typemap)
    for at, byte in enumerate(data):
        index, place = divmod(at, len(inner))
        memory[margin + index * typemap.extent + inner[place]] = byte
    return bytes(memory)


@check("truncation", "delivery")
def what_is_too_long_fills_its_receive_and_nothing_else(rank: PmlRank) -> None:
    """Posted and unexpected; a message behind it, in the same buffer's neighbourhood, is not touched by it."""
    before, after = neighbours(rank)
    for length in (1, 9, 600, 5000, 70_000, 300_000):
        for room in sorted({0, length // 2, length - 1}):
            for early in (True, False):
                words = f"a message of {length} bytes for {room}, {'with' if early else 'before'} its receive"
                got = bytearray([UNTOUCHED]) * (room + GUARDED)
                following = bytearray(50)
                sent, more = (
                    bytearray(rank.content(rank.rank, after, 1, length)),
                    bytearray(rank.content(rank.rank, after, 2, 50)),
                )
                receives = [rank.irecv(got, room, before, 1, rank.world)] if early else []
                sends = [rank.isend(sent, after, 1, STANDARD, rank.world), rank.isend(more, after, 1, STANDARD, rank.world)]
                rank.meet()
                receives = receives or [rank.irecv(got, room, before, 1, rank.world)]
                receives.append(rank.irecv(following, 50, before, 1, rank.world))
                first = receives[0]
                if not rank.until(lambda first=first: first.complete):  # type: ignore[misc]
                    raise Breach("delivery", f"{words} does not complete")
                source, tag, error, *_ = first.result
                if error != TRUNCATED:
                    raise Breach("truncation", f"{words} has the error {error} ({first.error}), not ERR_TRUNCATE")
                if (source, tag) != (before, 1):
                    raise Breach("status", f"{words}: its source and tag are {source} and {tag}")
                first.release()
                complete(rank, "truncation", f"what follows {words}", receives[1], *sends)
                theirs = rank.content(before, rank.rank, 1, length)
                same(rank, "truncation", got, theirs[:room] + bytes([UNTOUCHED]) * GUARDED, words)
                same(rank, "truncation", following, rank.content(before, rank.rank, 2, 50), f"what follows {words}")
        rank.alive()


@check("object", "delivery")
def memory_is_made_for_each_message(rank: PmlRank) -> None:
    """Once, when the message is known, by the number of its bytes; also of one that a matched probe took."""
    before, after = neighbours(rank)
    for number, length in enumerate((0, 1, 60, 3000, 9000, 70_000, 300_000)):
        for form in ("posted", "unexpected", "taken out"):
            words = f"a message of {length} bytes for memory made at the match, {form}"
            made: list[bytearray] = []

            def allocate(nbytes: int, made: list[bytearray] = made) -> bytearray:
                made.append(bytearray(nbytes))
                return made[-1]

            sent = bytearray(rank.content(rank.rank, after, number, length))
            receive = rank.pml.irecv_object(allocate, before, 4, rank.world) if form == "posted" else None
            if receive is not None and made:
                raise Breach("object", f"{words}: memory was made before there was a message")
            rank.meet()
            send = rank.isend(sent, after, 4, STANDARD, rank.world)
            if form == "unexpected":
                rank.meet()
            if form == "taken out":
                receive = rank.pml.imrecv_object(allocate, rank.pml.mprobe(before, 4, rank.world))
            receive = receive or rank.pml.irecv_object(allocate, before, 4, rank.world)
            if not rank.until(lambda receive=receive: receive.complete):  # type: ignore[misc]
                raise Breach("object", f"{words} does not complete", symptom=True)
            buffer = receive.buffer
            if [len(memory) for memory in made] != [length]:
                raise Breach("object", f"{words}: memory of {[len(memory) for memory in made]} bytes was asked for")
            if buffer is not made[0]:
                raise Breach("object", f"{words}: `buffer` is not the memory that was made for it")
            same(rank, "object", made[0], rank.content(before, rank.rank, number, length), words)
            complete(rank, "object", words, receive, send)
        rank.alive()
