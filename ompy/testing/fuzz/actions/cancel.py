"""Requests that end early: cancelled receives (MPI-4.1, 3.8.4), messages too long for their receive (3.2.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ompy.testing.fuzz.actions.message import communicator_of
from ompy.testing.fuzz.program import Action, Program

if TYPE_CHECKING:
    from ompy.testing.fuzz.generator import Composer, Plot

FIRST_TAG = 20_000


@dataclass
class Cancel(Action):
    """A receive that is cancelled, while its message may be coming; whoever did not get it receives it afterwards.

    Attributes:
        communicator: an action that made one, or -1.
        source, dest: ranks of the world.
        size: bytes.
        sent: `never`, `before` the cancel or `after` it.
        persistent: the receive is.
    """

    kind = "cancel"

    communicator: int
    source: int
    dest: int
    size: int
    sent: str
    persistent: bool

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        rng = composer.rng
        communicator = composer.communicator(lane, 2)
        if communicator == -2:
            return
        source, dest = rng.sample(composer.program.group(communicator), 2)
        sent = rng.choice(("never", "before", "before", "after"))
        made = cls(composer.number(), lane, communicator, source, dest, composer.size(), sent, rng.random() < 0.3)
        channel = composer.channel(lane, communicator, source, dest)
        tag, message = FIRST_TAG + made.number, made.number
        composer.hold(communicator)
        yield lambda: channel.may_send_first(tag)
        composer.add(made)
        if made.sent != "never":
            # For the channel it is a message that is sent and not received: no receive with any tag may be posted meanwhile.
            channel.sent.append((message, tag))
        if made.sent == "before" and rng.random() < 0.5:
            composer.step(made, "send", source)
            yield None
            composer.step(made, "post", dest)
        else:
            composer.step(made, "post", dest)
            yield None
            if made.sent == "before":
                composer.step(made, "send", source)
                yield None
        composer.step(made, "cancel", dest)
        if made.sent == "after":
            yield None
            composer.step(made, "send", source)
            yield None
            composer.step(made, "fetch", dest)
        elif made.sent == "before":
            composer.step(made, "fetch", dest)
        channel.receive(message)
        composer.release(communicator)
        if made.sent != "never":
            composer.begun(made, "s", source)

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        return [self.source, self.dest]

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        group, comm, n = program.group(self.communicator), communicator_of(self.communicator), self.number
        tag, a, b, r, st = FIRST_TAG + n, self.name("a"), self.name("b"), self.name("r"), self.name("st")
        whom, got = f"{group.index(self.source)}, {tag}", f"[{b}, {self.size}, MPI.BYTE]"
        if phase == "send":
            call = f"{comm}.Isend([{a}, {self.size}, MPI.BYTE], {group.index(self.dest)}, {tag})"
            return [f"{a} = filled(data({n}, {self.size}))", f"{self.name('s')} = {call}"]
        if phase == "post":
            start = f"{r} = {comm}.Irecv({got}, {whom})"
            if self.persistent:
                start = f"{r} = {comm}.Recv_init({got}, {whom}); {r}.Start()"
            return [f"{b} = filled(bytes([238]) * {self.size})", start]
        what = f"'message {n}'"
        if phase == "cancel":
            lines = [f"{st} = MPI.Status(); {r}.Cancel(); {r}.Wait({st})"]
            if self.persistent:
                lines.append(f"{r}.Free()")
            if self.sent == "never":
                lines.append(f"equal('cancelled {n}', {st}.Is_cancelled(), True)")
            return [*lines, f"if {st}.Is_cancelled(): check('cancelled {n}', {b}, bytes([238]) * {self.size})"]
        return [f"if {st}.Is_cancelled(): {comm}.Recv({got}, {whom})", f"check({what}, {b}, data({n}, {self.size}))"]

    def completed(self, program: Program, token: str, status: str, rank: int) -> list[str]:
        return [f"wipe({self.name('a')})"]

    def involved(self) -> set[int]:
        return {self.source, self.dest}

    def used(self) -> set[int]:
        return {self.communicator} - {-1}

    def renumbered(self, ranks: dict[int, int]) -> Action:
        return self.changed(source=ranks[self.source], dest=ranks[self.dest])

    def simpler(self) -> Iterator[Action]:
        for size in (4, self.size // 10, self.size // 2):
            if size < self.size:
                yield self.changed(size=size)
        if self.persistent:
            yield self.changed(persistent=False)


@dataclass
class Truncation(Action):
    """A message longer than its receive: ERR_TRUNCATE there, nothing beyond the receive's memory, and the next one is whole.

    Attributes:
        source, dest: ranks of the world.
        size, room: bytes of the message and of the receive.
        form: how it is received.
    """

    kind = "truncation"
    needs = frozenset({"errors"})

    source: int
    dest: int
    size: int
    room: int
    form: str

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        rng = composer.rng
        if composer.program.size < 2:
            return
        source, dest = rng.sample(range(composer.program.size), 2)
        size = composer.size() + 1
        made = cls(composer.number(), lane, source, dest, size, rng.randrange(size), rng.choice(("recv", "irecv", "mrecv")))
        composer.add(made)
        composer.step(made, "truncation")
        return
        yield

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        return program.everybody

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        c, n, b = self.name("c"), self.number, self.name("b")
        lines = [f"{c} = comm.Dup(); {c}.Set_errhandler(MPI.ERRORS_RETURN)"]
        if rank == self.source:
            for k in (0, 1):
                spec = f"[filled(data({n}{k}, {self.size})), {self.size}, MPI.BYTE]"
                lines.append(f"{self.name('q')}_{k} = {c}.Isend({spec}, {self.dest}, {k})")
            # What becomes of the send whose message is too long is open; the other one ends well.
            lines += [f"{self.name('q')}_1.Wait()", f"try: {self.name('q')}_0.Wait()", "except MPI.Exception: pass"]
        elif rank == self.dest:
            lines.append(f"{b} = filled(bytes([238]) * {self.size})")
            spec = f"[{b}, {self.room}, MPI.BYTE]"
            call = {
                "recv": f"{c}.Recv({spec}, {self.source}, 0)",
                "irecv": f"{c}.Irecv({spec}, {self.source}, 0).Wait()",
                "mrecv": f"{c}.Mprobe({self.source}, 0).Recv({spec})",
            }[self.form]
            lines.append(f"expect_error('message {n}, too long', lambda: {call}, [MPI.ERR_TRUNCATE])")
            left = self.size - self.room
            lines.append(f"check('memory behind a receive {n}', bytes({b})[{self.room}:], bytes([238]) * {left})")
            lines.append(f"{c}.Recv([{b}, {self.size}, MPI.BYTE], {self.source}, 1)")
            lines.append(f"check('message behind a truncated one {n}', {b}, data({n}1, {self.size}))")
        return [*lines, f"{c}.Free()"]

    def involved(self) -> set[int]:
        return {self.source, self.dest}

    def renumbered(self, ranks: dict[int, int]) -> Action:
        return self.changed(source=ranks[self.source], dest=ranks[self.dest])

    def simpler(self) -> Iterator[Action]:
        for size in (4, self.size // 10, self.size // 2):
            if 0 < size < self.size:
                yield self.changed(size=size, room=self.room * size // self.size)


@dataclass
class Flood(Action):
    """More messages in flight than a transport or a window of sequence numbers holds.

    Attributes:
        communicator: an action that made one, or -1.
        source, dest: ranks of the world.
        count: messages.
        size: bytes of each, at least 4.
        late: seconds until the first receive.
    """

    kind = "flood"

    communicator: int
    source: int
    dest: int
    count: int
    size: int
    late: float

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        rng = composer.rng
        communicator = composer.communicator(lane, 2)
        if communicator == -2:
            return
        source, dest = rng.sample(composer.program.group(communicator), 2)
        count = rng.choice((30, 100, 300, 1000))
        if "floods" in composer.setting.features and rng.random() < 0.03:
            count = rng.choice((70_000, 140_000))
        made = cls(composer.number(), lane, communicator, source, dest, count, 4, rng.choice((0, 0.001, 0.01)))
        if count < 1000 and rng.random() < 0.5:
            made.size = min(5000, composer.size() + 4)
        channel = composer.channel(lane, communicator, source, dest)
        composer.hold(communicator)
        yield lambda: channel.idle
        composer.release(communicator)
        composer.add(made)
        composer.step(made, "flood")

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        return [self.source, self.dest]

    def weight(self, program: Program, phase: str) -> int:
        return 2 * min(self.count, 1000)

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        group, comm, a, q = program.group(self.communicator), communicator_of(self.communicator), self.name("a"), self.name("q")
        tag, n = FIRST_TAG + self.number, self.size
        number = f"struct.pack('i', k) + bytes({n - 4})"
        if rank == self.source:
            send = f"{comm}.Isend([{a}[k], {n}, MPI.BYTE], {group.index(self.dest)}, {tag})"
            return [f"{a} = [{number} for k in range({self.count})]", f"{q} = [{send} for k in range({self.count})]",
                    f"MPI.Request.Waitall({q})"]  # fmt: skip
        receive = f"{comm}.Recv([{a}, {n}, MPI.BYTE], {group.index(self.source)}, {tag})"
        check = f"equal('message of the flood', struct.unpack('i', {a}[:4])[0], k)"
        return [f"time.sleep({self.late})", f"{a} = bytearray({n})", f"for k in range({self.count}): {receive}; {check}"]

    def involved(self) -> set[int]:
        return {self.source, self.dest}

    def used(self) -> set[int]:
        return {self.communicator} - {-1}

    def renumbered(self, ranks: dict[int, int]) -> Action:
        return self.changed(source=ranks[self.source], dest=ranks[self.dest])

    def simpler(self) -> Iterator[Action]:
        for count in (1, 2, self.count // 10, self.count // 2, self.count * 3 // 4):
            if 0 < count < self.count:
                yield self.changed(count=count)
        if self.size > 4:
            yield self.changed(size=4)
