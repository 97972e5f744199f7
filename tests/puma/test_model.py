"""The kernel against the papers in plain Python, over thousands of operations made at random."""

from __future__ import annotations

import random
from mmap import mmap

import pytest
from ompy_puma.application import END, NEXT, Application
from ompy_puma.capability import GroupCapability
from ompy_puma.descriptor import (
    ACKNOWLEDGE,
    CIRCULAR,
    READ,
    SAVE_BODY,
    SAVE_HEADER,
    SENDER_OFFSET,
    TRUNCATE,
    WRITE,
)
from portal_model import ANY, HEADER, Descriptor, Entry, Message, Model
from puma_machine import GROUP, Machine

OPERATIONS = 10_000
PORTALS = 6
DESCRIPTORS = 40
ENTRIES = 40


class Trial:
    """A process and its model, changed alike.

    Three senders: ranks 0 and 1 of group 2, and rank 0 of group 1; the receiver is rank 1 of group 1.
    """

    def __init__(self, chance: random.Random, **network) -> None:
        self.chance = chance
        self.machine = Machine(2, **network)
        own, self.receiver = self.machine.processes
        group = GroupCapability(GROUP, [(0, 1), (1, 1)])
        self.senders = [own]
        for rank in range(2):
            other = Application(GROUP + 1, rank)
            self.machine.kernels[0].create_context(other)
            other.grant(group)
            self.senders.append(other)
        self.inboxes = [mmap(-1, 1 << 20) for _ in self.senders]
        self.inbox_descriptors = []
        for sender, inbox in zip(self.senders, self.inboxes, strict=True):
            sender.events = None
            self.inbox_descriptors.append(sender.dynamic(inbox))
            sender.attach(0, self.inbox_descriptors[-1])
        self.model = Model(self.receiver.entry_count)
        self.memories: dict[int, list] = {}
        self.lists: dict[int, list[int]] = {portal: [] for portal in range(PORTALS)}

    # -- set-up

    def make_descriptor(self) -> None:
        chance = self.chance
        kind = chance.choice(["single", "independent", "combined", "dynamic", "overlay"])
        below = None
        if kind == "overlay":
            candidates = [index for index, each in self.model.descriptors.items() if each.below is None]
            if not candidates:
                return
            below = chance.choice(candidates)
            kind = self.model.descriptors[below].kind
        read = self.model.descriptors[below].read if below is not None else kind != "dynamic" and chance.random() < 0.3
        save = 0 if read else chance.choice([SAVE_BODY, SAVE_HEADER, SAVE_HEADER | SAVE_BODY])
        if kind == "combined" and not read:
            save = SAVE_BODY
        if kind == "dynamic":
            save |= SAVE_HEADER
        flags = 0
        if kind in ("single", "combined") and chance.random() < 0.5:
            flags |= SENDER_OFFSET
        if kind == "independent" and chance.random() < 0.6:
            flags |= CIRCULAR
        if not read and chance.random() < 0.5:
            flags |= ACKNOWLEDGE
        if kind != "dynamic" and chance.random() < 0.2:
            flags |= TRUNCATE
        index, memories = self.make(kind, READ if read else WRITE, save, flags, below)
        self.memories[index] = memories
        self.model.descriptors[index] = Descriptor(
            kind,
            [bytearray(memory) for memory in memories],
            read=read,
            header=bool(save & SAVE_HEADER),
            body=bool(save & SAVE_BODY),
            sender_offset=bool(flags & SENDER_OFFSET),
            circular=bool(flags & CIRCULAR),
            acknowledge=bool(flags & ACKNOWLEDGE),
            truncate=bool(flags & TRUNCATE),
            below=None if below is None else self.model.descriptors[below],
        )

    def make(self, kind: str, operation: int, save: int, flags: int, below: int | None) -> tuple[int, list]:
        receiver, chance = self.receiver, self.chance
        if below is not None:
            index = receiver.overlay(below, save, flags)
            return index, []
        if kind == "dynamic":
            heap = mmap(-1, chance.randrange(200, 3000))
            return receiver.dynamic(heap, save, flags), [heap]
        sizes = [chance.randrange(0, 120) for _ in range(1 if kind == "single" else chance.randrange(1, 6))]
        memories = [bytearray(chance.randbytes(size + (HEADER if kind == "single" else 0))) for size in sizes]
        if kind == "single":
            return receiver.single(memories[0], operation, save, flags), memories
        if kind == "independent":
            return receiver.independent(memories, operation, save, flags), memories
        return receiver.combined(memories, operation, flags), memories

    def make_entry(self) -> None:
        chance = self.chance
        if len(self.model.entries) >= ENTRIES or not self.model.descriptors:
            return
        descriptor = chance.choice(list(self.model.descriptors))
        bits, mask = chance.randrange(4), chance.choice([0, 1, 2, 3, 2**64 - 1])
        group, rank = chance.choice([ANY, GROUP, GROUP + 1]), chance.choice([ANY, ANY, 0, 1])
        index = self.receiver.entry(descriptor, bits, mask, group, rank)
        self.model.entries[index] = Entry(descriptor, bits, mask, group, rank)
        portal = chance.randrange(PORTALS)
        if self.model.portals.get(portal, ("list",))[0] != "list":
            return
        chain = self.lists[portal]
        at = chance.randrange(len(chain) + 1)
        self.receiver.append(portal, index, chain[at] if at < len(chain) else END)
        chain.insert(at, index)
        self.rechain(portal)

    def rechain(self, portal: int) -> None:
        chain = self.lists[portal]
        for at, index in enumerate(chain, 1):
            self.model.entries[index].no_match = chain[at] if at < len(chain) else END
        self.model.portals[portal] = ("list", chain[0] if chain else END)

    def remove_entry(self) -> None:
        portal = self.chance.randrange(PORTALS)
        chain = self.lists[portal]
        if chain:
            index = chain.pop(self.chance.randrange(len(chain)))
            self.receiver.forget(index)
            del self.model.entries[index]
            for other, entry in self.model.entries.items():
                if entry.too_long == index or entry.invalid == index:
                    self.receiver.link(other, too_long=NEXT, invalid=NEXT)
                    entry.too_long = entry.invalid = NEXT
            self.rechain(portal)

    def lay_link(self) -> None:
        chance = self.chance
        chained = [index for chain in self.lists.values() for index in chain]
        if chained:
            index = chance.choice(chained)
            target = chance.choice([END, NEXT, chance.choice(chained)])
            which = chance.choice(["too_long", "invalid"])
            self.receiver.link(index, **{which: target})
            setattr(self.model.entries[index], which, target)

    def attach(self) -> None:
        portal = self.chance.randrange(PORTALS)
        if self.lists[portal] or not self.model.descriptors:
            return
        descriptor = self.chance.choice(list(self.model.descriptors))
        self.receiver.attach(portal, descriptor)
        self.model.portals[portal] = ("descriptor", descriptor)

    # -- what the owner does meanwhile

    def tidy(self) -> None:
        """Release a letter, free a buffer, or set an offset back."""
        index = self.chance.choice(list(self.model.descriptors))
        mine = self.model.descriptors[index]
        if mine.below is not None:
            return
        if mine.kind == "dynamic" and mine.letters:
            number = self.chance.randrange(len(mine.letters))
            self.receiver.letters(index)[number].release()
            mine.release(number)
        elif mine.kind == "independent":
            number = self.chance.randrange(len(mine.memories))
            self.receiver.free_buffer(index, number)
            mine.full[number] = False
        elif mine.kind in ("single", "combined"):
            self.receiver.rewind(index)
            mine.offset = 0

    # -- a message

    def send(self) -> None:
        chance = self.chance
        who = chance.randrange(len(self.senders))
        sender = self.senders[who]
        body = chance.randbytes(chance.choice([0, 1, 8, chance.randrange(200), chance.randrange(900)]))
        message = Message(
            sender.group,
            sender.rank,
            chance.randrange(PORTALS),
            body,
            chance.randrange(4),
            chance.randrange(200),
            chance.choice([None, 0]),
            chance.randrange(100),
            chance.randrange(150),
            chance.randrange(100),
            chance.randbytes(12),
        )
        self.receiver.events.clear()
        sender.send(
            0,
            1,
            message.portal,
            body,
            match_bits=message.match_bits,
            offset=message.offset,
            answer=message.answer,
            answer_bits=message.answer_bits,
            answer_length=message.answer_length,
            answer_offset=message.answer_offset,
            user_data=message.user_data,
        )
        self.machine.run()
        expected = self.model.arrive(message)
        told = [event for event in self.receiver.events if event.kind.name != "EVENT_MATCHED"]
        assert len(told) == 1, (message, told)
        assert told[0].kind.name == f"EVENT_{expected.kind}", (message, expected, told)
        assert told[0].reason.name.removeprefix("DROP_") == (expected.reason or "NONE"), (message, expected)
        assert told[0].descriptor == expected.descriptor
        assert told[0].length == expected.length
        assert (told[0].message.source_group, told[0].message.source_rank) == (message.group, message.rank)
        self.compare_what_came_back(who, expected)
        if expected.descriptor >= 0:
            self.compare(expected.descriptor)

    def compare_what_came_back(self, who: int, expected) -> None:
        letters = self.senders[who].letters(self.inbox_descriptors[who])
        assert len(letters) == (1 if expected.sent_back else 0)
        for letter in letters:
            note = letter.message
            _, bits, offset, body, user_data, is_acknowledgement, saved = expected.sent_back
            assert (note.match_bits, note.offset, letter.body, note.user_data) == (bits, offset, body, user_data)
            assert (note.is_acknowledgement, note.is_reply) == (is_acknowledgement, not is_acknowledgement)
            assert note.return_length == (saved if is_acknowledgement else 0)
            letter.release()

    def compare(self, index: int) -> None:
        mine = self.model.descriptors[index]
        counters = self.receiver.counters(index)
        assert [counters[name] for name in ("messages", "bytes", "dropped")] == [mine.messages, mine.bytes, mine.dropped]
        base = index if mine.below is None else next(i for i, each in self.model.descriptors.items() if each is mine.below)
        self.compare_memory(base)

    def compare_memory(self, index: int) -> None:
        mine = self.model.descriptors[index]
        counters = self.receiver.counters(index)
        if mine.kind == "dynamic":
            letters = self.receiver.letters(index)
            assert [letter.body for letter in letters] == [letter.body for letter in mine.letters]
            assert [each.message.match_bits for each in letters] == [each.message.match_bits for each in mine.letters]
            assert [each.message.length for each in letters] == [len(each.message.body) for each in mine.letters]
            assert self.receiver.heap_use(index)[0] == sum(letter.size for letter in mine.letters)
            return
        for theirs, memory in zip(self.memories[index], mine.memories, strict=True):
            # The model writes a saved header as so many letters H.
            assert all(a == b or mark(memory, at) for at, (a, b) in enumerate(zip(theirs, memory, strict=True)))
            memory[:] = theirs
        if mine.kind == "independent":
            assert counters["current"] == mine.current
            for number in range(len(mine.memories)):
                state, used, _ = self.receiver.buffer(index, number)
                assert (state != 0) == mine.full[number]
                assert used == mine.used[number]
        else:
            assert counters["offset"] == mine.offset

    def step(self) -> None:
        kind = self.chance.random()
        if kind < 0.004 and len(self.model.descriptors) < DESCRIPTORS:
            self.make_descriptor()
        elif kind < 0.02:
            self.make_entry()
        elif kind < 0.03:
            self.remove_entry()
        elif kind < 0.05:
            self.lay_link()
        elif kind < 0.06:
            self.attach()
        elif kind < 0.25:
            self.tidy()
        else:
            self.send()


def mark(memory: bytearray, at: int) -> bool:
    """Whether a byte belongs to a header that the model has written."""
    return memory[at] == ord("H")


WIRES = {
    "whole": {"packet_size": 4096},
    "in pieces": {"packet_size": 256},
    "fetched": {"packet_size": 256, "can_fetch": True},
    "fetched in vain": {"packet_size": 256, "can_fetch": True, "fail_fetches": True, "capacity": 2},
}


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES.keys())
def test_the_kernel_does_what_the_papers_say(wire, seed):
    print(f"seed {seed}")
    trial = Trial(random.Random(seed), **wire)
    for _ in range(20):
        trial.make_descriptor()
    for _ in range(20):
        trial.make_entry()
    for portal in range(PORTALS):
        if not trial.lists[portal]:
            trial.attach()
    operations = OPERATIONS if wire is WIRES["whole"] else OPERATIONS // 4
    for _ in range(operations):
        trial.step()
    for index, descriptor in trial.model.descriptors.items():
        if descriptor.below is None:
            trial.compare_memory(index)
    used = [descriptor.messages for descriptor in trial.model.descriptors.values()]
    assert sum(used) > operations // 40
