"""The papers' portals in plain Python, one message at a time: what the kernel is compared with.

Written from the papers, without a look at how the kernel does it: descriptors hold lists of bytearrays, a message is a
NamedTuple, and everything is done at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

HEADER = 88
LETTER = 128
HEAP = 64
ANY = 0xFFFFFFFF
END, NEXT = -1, -2


class Message(NamedTuple):
    """What a sender says."""

    group: int
    rank: int
    portal: int
    body: bytes
    match_bits: int
    offset: int
    answer: int | None
    answer_bits: int
    answer_length: int
    answer_offset: int
    user_data: bytes


class Outcome(NamedTuple):
    """What became of it."""

    kind: str  # DEPOSITED, READ, DROPPED
    reason: str  # of a drop
    descriptor: int
    length: int
    sent_back: tuple  # (portal, bits, offset, body, user data, is acknowledgement, bytes saved), or nothing


class Refused(Exception):
    """A descriptor cannot take the message; the reason is the argument."""


@dataclass
class Letter:
    place: int
    size: int
    message: Message
    body: bytes


@dataclass
class Descriptor:
    """A memory descriptor and the memory under it."""

    kind: str
    memories: list[bytearray] = field(default_factory=list)
    read: bool = False
    header: bool = False
    body: bool = True
    sender_offset: bool = False
    circular: bool = False
    acknowledge: bool = False
    truncate: bool = False
    below: Descriptor | None = None
    offset: int = 0
    current: int = 0
    full: list[bool] = field(default_factory=list)
    used: list[int] = field(default_factory=list)
    free: list[tuple[int, int]] = field(default_factory=list)  # of a heap: (place, size), by place
    letters: list[Letter] = field(default_factory=list)
    messages: int = 0
    bytes: int = 0
    dropped: int = 0

    def __post_init__(self) -> None:
        self.full = [False] * len(self.memories)
        self.used = [0] * len(self.memories)
        if self.kind == "dynamic" and self.memories:
            self.free = [(HEAP, (len(self.memories[0]) - HEAP) // 16 * 16)]

    # -- what one message does

    def fitting(self, room: int, length: int, front: int, whole: int) -> int:
        """Bytes of the body that are taken, where `room` of `whole` bytes are left."""
        if front + length <= room:
            return length
        if room == 0 and whole and not self.sender_offset:
            raise Refused("FULL")
        if self.truncate and front <= room:
            return room - front
        raise Refused("TOO_LONG")

    def take(self, message: Message) -> tuple[int, bytes]:
        """Save a message, or read for it; returns (length, what was read)."""
        if self.read and message.answer is None:
            raise Refused("NO_REPLY")
        wanted = message.answer_length if self.read else len(message.body) if self.body else 0
        base = self.below or self
        return getattr(self, f"take_{self.kind}")(base, message, wanted)

    def take_stretch(self, base: Descriptor, message: Message, wanted: int, front: bytes) -> tuple[int, bytes]:
        """Single and combined blocks: a stretch of one run of bytes, which may lie in several memories."""
        whole = sum(len(memory) for memory in base.memories)
        offset = message.offset if self.sender_offset else base.offset
        if offset > whole:
            raise Refused("TOO_LONG" if self.sender_offset else "INVALID")
        length = self.fitting(whole - offset, wanted, len(front), whole)
        run = bytearray(b"".join(base.memories))
        data = bytes(run[offset : offset + length])
        if not self.read:
            new = front + message.body[:length] if self.body else front
            run[offset : offset + len(new)] = new
            at = 0
            for memory in base.memories:
                memory[:] = run[at : at + len(memory)]
                at += len(memory)
        if not self.sender_offset:
            base.offset = offset + len(front) + length
        return length, data

    def take_single(self, base: Descriptor, message: Message, wanted: int) -> tuple[int, bytes]:
        return self.take_stretch(base, message, wanted, b"H" * HEADER if self.header and not self.read else b"")

    def take_combined(self, base: Descriptor, message: Message, wanted: int) -> tuple[int, bytes]:
        return self.take_stretch(base, message, wanted, b"")

    def take_independent(self, base: Descriptor, message: Message, wanted: int) -> tuple[int, bytes]:
        number = base.current
        if number == len(base.memories):
            if not self.circular:
                raise Refused("FULL")
            number = 0
        if base.full[number]:
            raise Refused("FULL")
        memory = base.memories[number]
        if wanted > len(memory):
            if not self.truncate:
                raise Refused("TOO_LONG")
            wanted = len(memory)
        data = bytes(memory[:wanted])
        if not self.read:
            memory[:wanted] = message.body[:wanted]
        base.full[number] = True
        base.used[number] = wanted
        base.current = number + 1
        return wanted, data

    def take_dynamic(self, base: Descriptor, message: Message, wanted: int) -> tuple[int, bytes]:
        size = (LETTER + wanted + 15) // 16 * 16
        whole = len(base.memories[0])
        for index, (place, room) in enumerate(base.free):
            if room >= size:
                base.free[index : index + 1] = [(place + size, room - size)] if room > size else []
                base.letters.append(Letter(place, size, message, message.body[:wanted]))
                return wanted, b""
        raise Refused("TOO_LONG" if size > whole - HEAP else "FULL")

    # -- what the owner does

    def release(self, number: int) -> None:
        letter = self.letters.pop(number)
        blocks = sorted([*self.free, (letter.place, letter.size)])
        self.free = blocks[:1]
        for place, size in blocks[1:]:
            last, last_size = self.free[-1]
            if last + last_size == place:
                self.free[-1] = (last, last_size + size)
            else:
                self.free.append((place, size))


@dataclass
class Entry:
    descriptor: int
    match_bits: int
    mask: int
    group: int
    rank: int
    no_match: int = END
    too_long: int = NEXT
    invalid: int = NEXT

    def wants(self, message: Message) -> bool:
        return (
            (self.match_bits ^ message.match_bits) & self.mask == 0
            and self.group in (ANY, message.group)
            and self.rank in (ANY, message.rank)
        )


class Model:
    """One process's portals.

    Parameters:
        steps: entries that are looked at before a list counts as a ring: as many as there are.

    Attributes:
        descriptors, entries: by the kernel's indices.
        portals: number -> ("descriptor", index) or ("list", first entry).
    """

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.descriptors: dict[int, Descriptor] = {}
        self.entries: dict[int, Entry] = {}
        self.portals: dict[int, tuple[str, int]] = {}

    def arrive(self, message: Message) -> Outcome:
        """What becomes of a message."""
        if message.portal not in self.portals:
            return Outcome("DROPPED", "EMPTY_PORTAL", -1, 0, ())
        what, index = self.portals[message.portal]
        if what == "descriptor":
            try:
                return self.saved(index, message)
            except Refused as reason:
                return self.refused(str(reason), index)
        reason, refusing = "NO_MATCH", -1
        for _ in range(self.steps):
            if index == END:
                return self.refused(reason, refusing)
            entry = self.entries[index]
            if not entry.wants(message):
                index = entry.no_match
                continue
            try:
                return self.saved(entry.descriptor, message)
            except Refused as failure:
                reason, refusing = str(failure), entry.descriptor
            link = entry.too_long if reason == "TOO_LONG" else entry.invalid
            index = entry.no_match if link == NEXT else link
        return self.refused("BROKEN_LIST", refusing)

    def refused(self, reason: str, descriptor: int) -> Outcome:
        if descriptor >= 0:
            self.descriptors[descriptor].dropped += 1
        return Outcome("DROPPED", reason, descriptor, 0, ())

    def saved(self, index: int, message: Message) -> Outcome:
        descriptor = self.descriptors[index]
        length, data = descriptor.take(message)
        descriptor.messages += 1
        descriptor.bytes += length
        back = (message.answer, message.answer_bits, message.answer_offset)
        if descriptor.read:
            return Outcome("READ", "", index, length, (*back, data, message.user_data, False, 0))
        if descriptor.acknowledge and message.answer is not None:
            told = bytes([descriptor.header + 2 * descriptor.body]) + message.user_data[1:]
            return Outcome("DEPOSITED", "", index, length, (*back, b"", told, True, length))
        return Outcome("DEPOSITED", "", index, length, ())
