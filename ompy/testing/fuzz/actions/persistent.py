"""Persistent and partitioned messages, started again and again (MPI-4.1, 3.9 and chapter 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ompy.testing.fuzz.actions.message import communicator_of
from ompy.testing.fuzz.program import Action, Program

if TYPE_CHECKING:
    from ompy.testing.fuzz.generator import Composer, Plot

STARTS = "uvwx"
# Tags above those of plain messages: one for each action, so that only a receive with any tag could take them.
FIRST_TAG = 100


@dataclass
class Persistent(Action):
    """One persistent message between two ranks.

    Attributes:
        communicator: an action that made one, or -1.
        source, dest: ranks of the world.
        size: bytes.
        mode: `Send_init`, `Ssend_init`, `Bsend_init`, or with `Recv_init` alone a plain `Send`'s counterpart.
        starts: how often.
        receives: `Recv_init`, or `Irecv` each time.
    """

    kind = "persistent"

    communicator: int
    source: int
    dest: int
    size: int
    mode: str
    starts: int
    receives: str

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        rng = composer.rng
        communicator = composer.communicator(lane, 2)
        if communicator == -2:
            return
        source, dest = rng.sample(composer.program.group(communicator), 2)
        mode = rng.choice(("Send_init", "Send_init", "Ssend_init", "Bsend_init"))
        size = composer.size(100_000 if mode == "Bsend_init" else 0)
        made = cls(composer.number(), lane, communicator, source, dest, size, mode, rng.randint(1, 4), "")
        made.receives = rng.choice(("Recv_init", "Recv_init", "Irecv"))
        channel = composer.channel(lane, communicator, source, dest)
        composer.add(made)
        # The requests keep a communicator that is freed (7.4.3); at times it is freed before they are started.
        free = "start after free" in composer.setting.features and made.receives == "Recv_init"
        held = not free or rng.random() < 0.8
        if held:
            composer.hold(communicator)
        composer.step(made, "init", source)
        composer.step(made, "init", dest)
        for k, letter in enumerate(STARTS[: made.starts]):
            key, tag = made.number * 100 + k, FIRST_TAG + made.number
            yield partial(channel.may_send_first, tag)
            if rng.random() < 0.5:
                channel.sent.append((key, tag))
                composer.step(made, f"send {letter}", source)
                yield None
                channel.receive(key)
                composer.step(made, f"recv {letter}", dest)
            else:
                channel.posted.append((key, tag, False))
                composer.step(made, f"recv {letter}", dest)
                yield partial(channel.next_sent, key, tag)
                channel.send(key)
                composer.step(made, f"send {letter}", source)
            composer.begun(made, f"s{letter}", source)
            composer.begun(made, f"r{letter}", dest)
            yield composer.over(made, f"s{letter}", source)
            yield composer.over(made, f"r{letter}", dest)
        composer.step(made, "free", source)
        composer.step(made, "free", dest)
        if held:
            composer.release(communicator)

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        return [self.source, self.dest]

    def payload(self, letter: str) -> str:
        return f"data({self.number}{STARTS.index(letter)}, {self.size})"

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        group, comm, n = program.group(self.communicator), communicator_of(self.communicator), self.size
        word, _, letter = phase.partition(" ")
        s, r, a, b = self.name("s"), self.name("r"), self.name("a"), self.name("b")
        whom = f"{group.index(self.source)}, {FIRST_TAG + self.number}"
        if word == "init" and rank == self.source:
            call = f"{comm}.{self.mode}([{a}, {n}, MPI.BYTE], {group.index(self.dest)}, {FIRST_TAG + self.number})"
            return [f"{a} = filled(bytes({n}))", f"{s} = {call}"]
        if word == "init":
            lines = [f"{b} = filled(bytes({n}))"]
            return [*lines, f"{r} = {comm}.Recv_init([{b}, {n}, MPI.BYTE], {whom})"] if self.receives == "Recv_init" else lines
        if word == "send":
            return [f"refill({a}, {self.payload(letter)})", f"s{letter}{self.number} = {s}; {s}.Start()"]
        if word == "recv":
            request = f"r{letter}{self.number}"
            start = f"{request} = {r}; MPI.Prequest.Startall([{r}])"
            if self.receives == "Irecv":
                start = f"{request} = {comm}.Irecv([{b}, {n}, MPI.BYTE], {whom})"
            return [f"refill({b}, bytes([238]) * {n})", start]
        return [f"{s}.Free()"] if rank == self.source else [f"{r}.Free()"] * (self.receives == "Recv_init")

    def buffer_needed(self, rank: int) -> int:
        return (self.size + 2048) * self.starts if self.mode == "Bsend_init" and rank == self.source else 0

    def completed(self, program: Program, token: str, status: str, rank: int) -> list[str]:
        letter = token[1]
        if token[0] == "s":
            return [f"wipe({self.name('a')})"]
        lines = []
        if status:
            source = program.group(self.communicator).index(self.source)
            lines.append(
                f"check_status('persistent {self.number}', {status}, {source}, {FIRST_TAG + self.number}, {self.size})"
            )
        return [*lines, f"check('persistent {self.number}', {self.name('b')}, {self.payload(letter)})"]

    def involved(self) -> set[int]:
        return {self.source, self.dest}

    def used(self) -> set[int]:
        return {self.communicator} - {-1}

    def renumbered(self, ranks: dict[int, int]) -> Action:
        return self.changed(source=ranks[self.source], dest=ranks[self.dest])

    def simpler(self) -> Iterator[Action]:
        for size in (0, 4, self.size // 10, self.size // 2):
            if size < self.size:
                yield self.changed(size=size)
        if self.mode != "Send_init":
            yield self.changed(mode="Send_init")


@dataclass
class Partitioned(Action):
    """Partitioned messages between two ranks, all with one tag: they match in the order of the init calls (4.2).

    Attributes:
        communicator: an action that made one, or -1.
        source, dest: ranks of the world.
        sizes: bytes of a partition of each message.
        partitions: of each message's sender; its receiver has `received` of them.
        received: partitions of the receivers.
        started: order in which the messages are started, by the sender; the receiver has the reverse of it.
        seed: of the order of partitions.
        starts: how often.
    """

    kind = "partitioned"
    needs = frozenset({"mpi4.0"})

    communicator: int
    source: int
    dest: int
    sizes: list[int]
    partitions: int
    received: int
    started: list[int]
    seed: int
    starts: int

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        rng = composer.rng
        communicator = composer.communicator(lane, 2)
        if communicator == -2:
            return
        source, dest = rng.sample(composer.program.group(communicator), 2)
        sizes = [composer.size(40_000) + 1 for _ in range(rng.randint(1, 3))]
        partitions = rng.choice((1, 2, 4, 6))
        # Both sides have the same bytes; the number of partitions may differ (4.2.1).
        received = rng.choice([n for n in (1, 2, 3, 4, 6) if partitions % n == 0])
        started = rng.sample(range(len(sizes)), len(sizes))
        made = cls(composer.number(), lane, communicator, source, dest, sizes, partitions, received, started,
                   rng.randrange(1000), rng.randint(1, 3))  # fmt: skip
        composer.add(made)
        composer.hold(communicator)
        composer.step(made, "init", source)
        composer.step(made, "init", dest)
        for letter in STARTS[: made.starts]:
            yield None
            first, second = rng.choice(((source, dest), (dest, source)))
            composer.step(made, f"start {letter}", first)
            yield None
            composer.step(made, f"start {letter}", second)
            yield None
            composer.step(made, f"ready {letter}", source)
            yield None
            for rank in (source, dest):
                composer.step(made, f"done {letter}", rank)
        composer.step(made, "free", source)
        composer.step(made, "free", dest)
        composer.release(communicator)

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        return [self.source, self.dest]

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        import random

        group, comm, tag = program.group(self.communicator), communicator_of(self.communicator), FIRST_TAG + self.number
        word, _, letter = phase.partition(" ")
        sends = rank == self.source
        q, b = self.name("q"), self.name("b")
        total = self.partitions
        lines = []
        if word == "init":
            peer, parts = (group.index(self.dest), total) if sends else (group.index(self.source), self.received)
            call = "Psend_init" if sends else "Precv_init"
            lines.append(f"{q}, {b} = [], []")
            for size in self.sizes:
                lines.append(f"{b}.append(filled(bytes({size * total})))")
                each = size * total // parts
                lines.append(f"{q}.append({comm}.{call}([{b}[-1], {each}, MPI.BYTE], {parts}, {peer}, {tag}))")
            return lines
        order = self.started if sends else self.started[::-1]
        if word == "start":
            for k in order:
                content = self.payload(letter, k) if sends else f"bytes([238]) * {self.sizes[k] * total}"
                lines.append(f"refill({b}[{k}], {content}); {q}[{k}].Start()")
            return lines
        if word == "ready":
            rng = random.Random(f"{self.seed} {letter}")
            for k in order[::-1]:
                which = rng.choice(("range", "each", "list"))
                if which == "range":
                    lines.append(f"{q}[{k}].Pready_range(0, {total - 1})")
                elif which == "list":
                    lines.append(f"{q}[{k}].Pready_list({rng.sample(range(total), total)})")
                else:
                    lines += [f"{q}[{k}].Pready({part})" for part in rng.sample(range(total), total)]
            return lines
        for k in order:
            if word == "free":
                lines.append(f"{q}[{k}].Free()")
            elif sends:
                lines.append(f"{q}[{k}].Wait(); wipe({b}[{k}])")
            else:
                part = self.seed % self.received
                size = self.sizes[k] * total // self.received
                lines.append(f"while not {q}[{k}].Parrived({part}): pass")
                cut = f"[{part * size}:{(part + 1) * size}]"
                what = f"'partitioned {self.number}, message {k}'"
                lines.append(f"check({what}, bytes({b}[{k}]){cut}, {self.payload(letter, k)}{cut})")
                lines.append(f"{q}[{k}].Wait(); check({what}, {b}[{k}], {self.payload(letter, k)})")
        return lines

    def payload(self, letter: str, k: int) -> str:
        return f"data({self.number}{STARTS.index(letter)}{k:02}, {self.sizes[k] * self.partitions})"

    def involved(self) -> set[int]:
        return {self.source, self.dest}

    def used(self) -> set[int]:
        return {self.communicator} - {-1}

    def renumbered(self, ranks: dict[int, int]) -> Action:
        return self.changed(source=ranks[self.source], dest=ranks[self.dest])

    def simpler(self) -> Iterator[Action]:
        if len(self.sizes) > 1:
            last = len(self.sizes) - 1
            yield self.changed(sizes=self.sizes[:-1], started=[k for k in self.started if k != last])
        if any(size > 4 for size in self.sizes):
            yield self.changed(sizes=[min(4, size) for size in self.sizes])
        if self.partitions > 1:
            yield self.changed(partitions=1, received=1)
