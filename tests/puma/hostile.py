"""Mutated packets and descriptors through a kernel, with guard pages around every memory that it may write.

python hostile.py SEED COUNT            prints what happened; dies by a signal if the kernel left its bounds
"""

from __future__ import annotations

import ctypes
import faulthandler
import random
import sys
from collections import Counter
from mmap import PAGESIZE, mmap

from ompy_puma.application import TABLE_ENTRY, Application, Table
from ompy_puma.capability import GroupCapability
from ompy_puma.descriptor import ACKNOWLEDGE, CIRCULAR, COMPACT, READ, SAVE_BODY, SAVE_BOTH, SAVE_HEADER, SENDER_OFFSET, WRITE
from ompy_puma.kernel import QKernel
from ompy_puma.loop_wire import Network
from ompy_puma.pct import ProcessControlThread
from ompy_puma.process import DropReason

LIBC = ctypes.CDLL(None, use_errno=True)
ROUND = 10_000  # inputs for one set of nodes
PORTALS = 16
MESSAGE, OPENING, OFFER, FRAGMENT, FETCHED, STREAM = range(1, 7)
BEGINNINGS = {MESSAGE, OPENING, OFFER}
REST = 25  # inputs, after which everything is as it was


class Guarded:
    """Memory between two pages that may not be touched; it ends where the second begins, or begins where the first ends."""

    def __init__(self, size: int, at_end: bool = True) -> None:
        room = (size + PAGESIZE - 1) // PAGESIZE * PAGESIZE
        self.mapping = mmap(-1, room + 2 * PAGESIZE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.mapping))
        for guard in (base, base + PAGESIZE + room):
            if LIBC.mprotect(ctypes.c_void_p(guard), PAGESIZE, 0):
                raise OSError(ctypes.get_errno(), "mprotect")
        self.start = base + PAGESIZE + (room - size if at_end else 0)
        self.end = self.start + size
        self.memory = (ctypes.c_char * size).from_address(self.start)


class Victim:
    """Two nodes; node 1 has a process with every kind of descriptor, all of whose memory is guarded."""

    def __init__(self, chance: random.Random, can_fetch: bool) -> None:
        self.chance = chance
        self.network = Network(packet_size=512, can_fetch=can_fetch)
        self.kernels = [QKernel(node, self.network.wire(node), engine=False) for node in range(2)]
        self.areas = [Guarded(size, at_end) for size, at_end in SHAPES]
        self.quiet = Guarded(PAGESIZE)
        self.quiet.memory.raw = bytes(range(256)) * (PAGESIZE // 256)
        self.told: Counter[tuple[str, str]] = Counter()
        self.victim = Application(
            1,
            1,
            portals=PORTALS,
            entries=32,
            descriptors=32,
            queue_limit=200,
            memory=[(area.start, area.end) for area in (*self.areas, self.quiet)],
        )
        self.sender = Application(1, 0, memory=((4096, 1 << 63),))
        self.pct = ProcessControlThread(self.kernels[1], [0, 1])
        for node, process in enumerate((self.sender, self.victim)):
            self.kernels[node].create_context(process, 1)
            process.grant(GroupCapability(1, [(0, 1), (1, 1)]))
            process.events = None
        self.sender.attach(0, self.sender.dynamic(mmap(-1, 1 << 16)))
        for process in (self.victim, self.pct):
            process.watcher = self.count
        self.set_up()
        # The arrays are the victim's own too: a mutation is undone from here.
        self.tables = [self.victim.portal_table, self.victim.match_entries, self.victim.memory_descriptors]
        self.saved = [bytes(table) for table in self.tables]
        self.contents = [bytes(area.memory) for area in self.areas]

    def count(self, happening) -> None:
        self.told[happening.kind.name, happening.reason.name] += 1

    def set_up(self) -> None:
        victim, areas = self.victim, iter(self.areas)

        def memory():
            return next(areas).memory

        blocks = [
            victim.single(memory(), WRITE, SAVE_BODY, SENDER_OFFSET | ACKNOWLEDGE),
            victim.single(memory(), WRITE, SAVE_BOTH),
            victim.single(memory(), READ, 0, SENDER_OFFSET),
            victim.independent(Table([memory(), memory()], memory()), WRITE, SAVE_BOTH, CIRCULAR | ACKNOWLEDGE),
            victim.independent(Table([memory()], memory()), READ, 0, CIRCULAR),
            victim.combined(Table([memory(), memory(), memory()], memory()), WRITE, SENDER_OFFSET | ACKNOWLEDGE),
            victim.combined(Table([memory(), memory()], memory()), READ, SENDER_OFFSET),
            victim.dynamic(memory(), SAVE_BOTH, COMPACT | ACKNOWLEDGE),
        ]
        blocks.append(victim.overlay(blocks[-1], SAVE_HEADER))
        for portal, block in enumerate(blocks):
            victim.attach(portal, block)
        for portal in range(len(blocks), PORTALS - 1):
            for number, block in enumerate(self.chance.sample(blocks, 3)):
                victim.append(portal, victim.entry(block, number, 1))

    # -- inputs

    def packets(self) -> list[list[bytes]]:
        """Good packets, those of each kind together."""
        found: dict[int, list[bytes]] = {}
        # Bodies and stretches that just fit, and that are one byte too long.
        edges = {len(area.memory) + more for area in self.areas for more in (0, 1)} | {20, 1500}
        for portal in range(PORTALS):
            for size in edges:
                for offset in (0, size // 8, 1):
                    self.sender.send(0, 1, portal, b"x" * size, offset=offset)
                    self.sender.send(0, 1, portal, b"y" * size, match_bits=1, answer=0, answer_length=size, user_data=b"u")
        for _, target, packet in self.network.packets():
            if target == 1:
                found.setdefault(packet[0], []).append(packet)
        self.network.run()
        for kind in (FRAGMENT, FETCHED, STREAM):
            found.setdefault(kind, []).append(bytes([kind]) + bytes(23))
        return list(found.values())

    def mutated(self, packet: bytes) -> bytes:
        chance = self.chance
        data = bytearray(packet)
        for _ in range(chance.choice((0, 1, 1, 2, 3, 8))):
            width = chance.choice((1, 1, 2, 4, 8))
            at = chance.randrange(min(len(data), 120))
            data[at : at + width] = self.number(width)
        how = chance.random()
        if how < 0.1:
            del data[chance.randrange(len(data) + 1) :]
        elif how < 0.15:
            data += chance.randbytes(chance.randrange(1, 600))
        return bytes(data)

    def number(self, width: int) -> bytes:
        """Bytes of a number that is likely to hurt."""
        chance = self.chance
        if chance.random() < 0.4:
            return chance.randbytes(width)
        value = chance.choice((0, 1, -1, 2, 88, 128, 1 << 31, (1 << 31) - 1, 1 << 63, (1 << 63) - 1, *self.addresses()))
        return ((value + chance.choice((-8, -1, 0, 0, 1, 8))) & (1 << 8 * width) - 1).to_bytes(width, "little")

    def addresses(self) -> tuple[int, ...]:
        area = self.chance.choice((*self.areas, self.quiet))
        return area.start, area.end, area.end - 8, area.end - area.start

    def mutate_descriptors(self) -> None:
        """Write over the victim's tables, buffer tables and heap."""
        for table in self.tables:
            used = len(table) if table is not self.tables[2] else len(table) * 10 // 32
            for _ in range(self.chance.randrange(4)):
                width = self.chance.choice((1, 4, 8))
                at = self.chance.randrange(used - width) // width * width
                table[at : at + width] = self.number(width)
        area = self.chance.choice(self.areas)
        if len(area.memory) >= 8:
            at = self.chance.randrange(len(area.memory) - 7) // 8 * 8
            ctypes.memmove(area.start + at, self.number(8), 8)

    def restore(self) -> None:
        for table, saved in zip(self.tables, self.saved, strict=True):
            table[:] = saved
        for area, content in zip(self.areas, self.contents, strict=True):
            area.memory.raw = content

    # -- what must hold

    def dropped(self) -> int:
        """Drops that were counted, whomever they were for."""
        counts = Counter(self.victim.drop_counts) + Counter(self.pct.drop_counts)
        return counts.total() - counts[DropReason.DROP_LOST]

    def check(self, messages: int, dropped: int) -> None:
        told = sum(number for (kind, _), number in self.told.items() if kind == "EVENT_DROPPED")
        assert told == dropped, f"{told} drops were told, {dropped} counted"
        ends = self.told.total() - sum(number for (kind, _), number in self.told.items() if kind == "EVENT_LOST")
        assert ends >= messages, f"{messages} messages came; what became of {messages - ends} nobody was told"


# (size, against the guard behind it rather than before it)
SHAPES = (
    (300, True),
    (500, False),
    (200, True),
    (64, True),
    (100, False),
    (2 * TABLE_ENTRY, True),
    (200, True),
    (TABLE_ENTRY, True),
    (40, True),
    (0, True),
    (250, False),
    (3 * TABLE_ENTRY, True),
    (30, True),
    (90, False),
    (2 * TABLE_ENTRY, True),
    (4096, True),
)


def run(seed: int, count: int) -> Counter[tuple[str, str]]:
    """So many inputs; returns how often what was told."""
    chance = random.Random(seed)
    total: Counter[tuple[str, str]] = Counter()
    for turn in range(count // ROUND):
        only_packets = turn % 2 == 0
        victim = Victim(chance, can_fetch=turn % 4 > 1)
        templates = victim.packets()
        victim.restore()
        victim.told.clear()
        before = victim.dropped()
        messages = 0
        for number in range(ROUND):
            if not only_packets and chance.random() < 0.5:
                victim.mutate_descriptors()
            packet = victim.mutated(chance.choice(chance.choice(templates)))
            messages += bool(packet) and packet[0] in BEGINNINGS
            victim.kernels[1].receive_packet(packet)
            if number % REST == REST - 1:
                victim.network.run()
                for letter in victim.sender.letters(0):
                    letter.release()
                victim.restore()
        victim.check(messages, victim.dropped() - before)
        if only_packets:
            assert victim.quiet.memory.raw == bytes(range(256)) * (PAGESIZE // 256), "memory of no descriptor was written"
        total += victim.told
    return total


if __name__ == "__main__":
    faulthandler.enable()
    for (kind, reason), number in sorted(run(int(sys.argv[1]), int(sys.argv[2])).items()):
        print(f"{number:9} {kind} {reason}")
