"""Synchronous sends that must not complete before their receive has begun (MPI-4.1, 3.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ompy.testing.fuzz.actions.message import communicator_of
from ompy.testing.fuzz.program import Action, Program

if TYPE_CHECKING:
    from ompy.testing.fuzz.generator import Composer, Plot

FIRST_TAG = 30_000


@dataclass
class Synchronous(Action):
    """A synchronous send whose receiver waits to be told before it receives.

    Attributes:
        communicator: an action that made one, or -1.
        source, dest: ranks of the world.
        size: bytes.
        tests: that the sender makes before it tells the receiver.
    """

    kind = "synchronous"

    communicator: int
    source: int
    dest: int
    size: int
    tests: int

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        rng = composer.rng
        communicator = composer.communicator(lane, 2)
        if communicator == -2:
            return
        source, dest = rng.sample(composer.program.group(communicator), 2)
        made = cls(composer.number(), lane, communicator, source, dest, composer.size(), rng.choice((1, 3, 20)))
        channel = composer.channel(lane, communicator, source, dest)
        composer.hold(communicator)
        yield lambda: channel.may_send_first(FIRST_TAG + made.number)
        composer.add(made)
        channel.sent.append((made.number, FIRST_TAG + made.number))
        composer.step(made, "send", source)
        yield None
        channel.receive(made.number)
        composer.release(communicator)
        composer.step(made, "meet")
        composer.begun(made, "s", source)

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        return [self.source, self.dest]

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        group, comm, n = program.group(self.communicator), communicator_of(self.communicator), self.number
        a, b, s = self.name("a"), self.name("b"), self.name("s")
        early = f"for _ in range({self.tests}): equal('synchronous send {n}, not received', {s}.Test(), False)"
        if phase == "send":
            call = f"{comm}.Issend([{a}, {self.size}, MPI.BYTE], {group.index(self.dest)}, {FIRST_TAG + n})"
            return [f"{a} = filled(data({n}, {self.size}))", f"{s} = {call}", early]
        if rank == self.source:
            return [early, f"ctl.Send([bytearray(), 0, MPI.BYTE], {self.dest}, {n})"]
        receive = f"{comm}.Recv([{b}, {self.size}, MPI.BYTE], {group.index(self.source)}, {FIRST_TAG + n})"
        return [
            f"{b} = filled(bytes([238]) * {self.size})",
            f"ctl.Recv([bytearray(), 0, MPI.BYTE], {self.source}, {n})",
            receive,
            f"check('synchronous message {n}', {b}, data({n}, {self.size}))",
        ]

    def completed(self, program: Program, token: str, status: str, rank: int) -> list[str]:
        return [f"wipe({self.name('a')})"]

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
