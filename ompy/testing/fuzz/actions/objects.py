"""Python objects by the methods in small letters: whatever is done to an object after `isend` is not seen by the receiver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ompy.testing.fuzz.actions.message import communicator_of
from ompy.testing.fuzz.program import Action, Program

if TYPE_CHECKING:
    from ompy.testing.fuzz.generator import Composer, Plot

TAG = 60
COLLECTIVES = ("bcast", "gather", "scatter", "allgather", "alltoall", "allreduce", "reduce", "scan")


@dataclass
class Objects(Action):
    """Objects from one rank to another, or through a collective, in a communicator whose channel is clear.

    Attributes:
        communicator: an action that made one, or -1.
        source, dest: ranks of the world.
        what: `isend`, or a collective.
        size: bytes that the object holds.
        shape: of the object: `bytearray`, `list`, `numpy`.
    """

    kind = "objects"

    communicator: int
    source: int
    dest: int
    what: str
    size: int
    shape: str

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        rng = composer.rng
        communicator = composer.communicator(lane, 2)
        if communicator == -2:
            return
        source, dest = rng.sample(composer.program.group(communicator), 2)
        shapes = ["bytearray", "list"] + ["numpy"] * ("numpy" in composer.setting.features)
        what = "isend" if rng.random() < 0.6 else rng.choice(COLLECTIVES)
        made = cls(composer.number(), lane, communicator, source, dest, what, composer.size(200_000), rng.choice(shapes))
        channel = composer.channel(lane, communicator, source, dest)
        tag, message = TAG + made.number, made.number
        if what != "isend":
            composer.add(made)
            composer.step(made, "call")
            return
        composer.hold(communicator)
        yield lambda: channel.may_send_first(tag)
        composer.release(communicator)
        composer.add(made)
        channel.sent.append((message, tag))
        composer.step(made, "send", source)
        yield None
        channel.receive(message)
        composer.step(made, "recv", dest)
        yield None
        composer.step(made, "done", source)

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        return program.group(self.communicator)

    def made(self, seed: str) -> str:
        if self.shape == "list":
            return f"list(data({seed}, {self.size % 3000}))"
        if self.shape == "numpy":
            return f"numpy.frombuffer(data({seed}, {self.size}), 'B').copy()"
        return f"bytearray(data({seed}, {self.size}))"

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        group, comm, n = program.group(self.communicator), communicator_of(self.communicator), self.number
        me, size, root = group.index(rank), len(group), group.index(self.source)
        x = self.name("x")
        if phase == "send":
            call = f"{self.name('q')} = {comm}.isend({x}, {group.index(self.dest)}, {TAG + n})"
            return [f"{x} = {self.made(str(n))}", call, f"{x}[:] = {x}[::-1]"]
        if phase == "recv":
            got = f"{comm}.recv(None, {root}, {TAG + n})"
            return [f"check('object {n}', bytes({got}), bytes({self.made(str(n))}))"]
        if phase == "done":
            return [f"{self.name('q')}.wait()"]
        mine, what = self.made(f"{n}{me:02}"), f"'{self.what} {n}'"
        every = "[" + ", ".join(f"bytes({self.made(f'{n}{k:02}')})" for k in range(size)) + "]"
        if self.what == "bcast":
            got = f"{comm}.bcast({mine if me == root else None}, {root})"
            return [f"check({what}, bytes({got}), bytes({self.made(f'{n}{root:02}')}))"]
        if self.what in ("gather", "allgather"):
            more = f", {root}" if self.what == "gather" else ""
            got = f"{x} = {comm}.{self.what}({mine}{more})"
            receives = me == root or self.what == "allgather"
            return [got, f"equal({what}, [bytes(y) for y in {x}], {every})" if receives else f"equal({what}, {x}, None)"]
        if self.what == "scatter":
            given = f"[{', '.join(self.made(f'{n}{k:02}') for k in range(size))}]" if me == root else "None"
            return [f"check({what}, bytes({comm}.scatter({given}, {root})), bytes({mine}))"]
        if self.what == "alltoall":
            given = ", ".join(self.made(f"{n}{me:02}{k:02}") for k in range(size))
            expected = ", ".join(f"bytes({self.made(f'{n}{k:02}{me:02}')})" for k in range(size))
            return [f"equal({what}, [bytes(y) for y in {comm}.alltoall([{given}])], [{expected}])"]
        # Tuples put together: an operation that does not commute.
        last = {"scan": me + 1}.get(self.what, size)
        expected = f"{tuple(range(n, n + last))}"
        more = f", root={root}" if self.what == "reduce" else ""
        if self.what == "reduce" and me != root:
            expected = "None"
        return [f"equal({what}, {comm}.{self.what}(({n + me},), MPI.SUM{more}), {expected})"]

    def involved(self) -> set[int]:
        return {self.source, self.dest}

    def used(self) -> set[int]:
        return {self.communicator} - {-1}

    def renumbered(self, ranks: dict[int, int]) -> Action:
        return self.changed(source=ranks[self.source], dest=ranks[self.dest])

    def simpler(self) -> Iterator[Action]:
        for size in (0, 4, self.size // 10, self.size // 2, self.size * 9 // 10):
            if size < self.size:
                yield self.changed(size=size)
        if self.shape != "bytearray":
            yield self.changed(shape="bytearray")
