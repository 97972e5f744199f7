"""Send-receives of two ranks or a ring (MPI-4.1, 3.10), and null processes (3.10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ompy.testing.fuzz.actions.message import communicator_of
from ompy.testing.fuzz.program import Action, Program

if TYPE_CHECKING:
    from ompy.testing.fuzz.generator import Composer, Plot

# A tag of its own, so that nobody's receive but a wildcard's could match it; those keep out by `may_send_first`.
TAG = 50


@dataclass
class Exchange(Action):
    """Every member sends to the next one and receives from the one before.

    Attributes:
        communicator: an action that made one, or -1.
        form: `Sendrecv`, `Sendrecv_replace`, `Isendrecv`, `Isendrecv_replace`, `sendrecv` (objects).
        size: bytes.
        line: the ends of a line have null processes for neighbours; else it is a ring.
    """

    kind = "exchange"

    communicator: int
    form: str
    size: int
    line: bool

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        rng = composer.rng
        communicator = composer.communicator(lane)
        members = composer.program.group(communicator)
        forms = ["Sendrecv", "Sendrecv_replace", "sendrecv"] + ["Isendrecv", "Isendrecv_replace"] * (
            "isendrecv" in composer.setting.features
        )
        made = cls(composer.number(), lane, communicator, rng.choice(forms), composer.size(300_000), rng.random() < 0.3)

        def clear() -> bool:
            size = len(members)
            return all(composer.channel(lane, communicator, members[k - 1], members[k]).idle for k in range(size))

        composer.hold(communicator)
        yield clear
        composer.release(communicator)
        composer.add(made)
        composer.step(made, "exchange")

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        return program.group(self.communicator)

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        group, comm, n = program.group(self.communicator), communicator_of(self.communicator), self.size
        me, size = group.index(rank), len(group)
        before, after = (me - 1) % size, (me + 1) % size
        null = "MPI.PROC_NULL"
        source = null if self.line and me == 0 else str(before)
        dest = null if self.line and me == size - 1 else str(after)
        a, b, st = self.name("a"), self.name("b"), self.name("st")
        ours, theirs = f"data({self.number}{me:02}, {n})", f"data({self.number}{before:02}, {n})"
        if self.form == "sendrecv":
            expected = "None" if source == null else theirs
            return [
                f"equal('sendrecv {self.number}', {comm}.sendrecv({ours}, {dest}, {TAG}, None, {source}, {TAG}), {expected})"
            ]
        replace = self.form.endswith("replace")
        lines = [f"{a} = filled({ours})", f"{st} = MPI.Status()"]
        if replace:
            b, call = a, f"{comm}.{self.form}([{a}, {n}, MPI.BYTE], {dest}, {TAG}, {source}, {TAG}"
        else:
            lines.append(f"{b} = filled(bytes([238]) * {n})")
            call = f"{comm}.{self.form}([{a}, {n}, MPI.BYTE], {dest}, {TAG}, [{b}, {n}, MPI.BYTE], {source}, {TAG}"
        lines.append(f"{call}).Wait({st})" if self.form.startswith("I") else f"{call}, {st})")
        if source == null:
            lines.append(f"check_status('nobody {self.number}', {st}, MPI.PROC_NULL, MPI.ANY_TAG, 0)")
            unchanged = ours if replace else f"bytes([238]) * {n}"
            return [*lines, f"check('nobody {self.number}', {b}, {unchanged})"]
        lines.append(f"check_status('exchange {self.number}', {st}, {source}, {TAG}, {n})")
        return [*lines, f"check('exchange {self.number}', {b}, {theirs})"]

    def used(self) -> set[int]:
        return {self.communicator} - {-1}

    def simpler(self) -> Iterator[Action]:
        for size in (0, 4, self.size // 10, self.size // 2):
            if size < self.size:
                yield self.changed(size=size)
        if self.form != "Sendrecv":
            yield self.changed(form="Sendrecv")
        if self.line:
            yield self.changed(line=False)
