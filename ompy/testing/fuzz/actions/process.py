"""What a program does beside MPI: it pauses, collects garbage, forks, and is interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ompy.testing.fuzz.program import Action, Program

if TYPE_CHECKING:
    from ompy.testing.fuzz.generator import Composer, Plot


@dataclass
class Pause(Action):
    """A rank does something else.

    Attributes:
        rank: of the world.
        what: `sleep`, `spin`, `collect` (garbage), `probe` (progress without a message).
        milliseconds: of the first two.
    """

    kind = "pause"

    rank: int
    what: str
    milliseconds: float

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        rng = composer.rng
        what = rng.choice(("sleep", "spin", "collect", "probe"))
        made = cls(composer.number(), lane, rng.randrange(composer.program.size), what, rng.choice((0.05, 0.3, 1, 2)))
        composer.add(made)
        composer.step(made, "pause")
        return
        yield

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        return [self.rank]

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        if self.what == "sleep":
            return [f"time.sleep({self.milliseconds / 1000})"]
        if self.what == "spin":
            return [f"t = time.monotonic() + {self.milliseconds / 1000}", "while time.monotonic() < t: pass"]
        return ["gc.collect()"] if self.what == "collect" else [f"comm.Iprobe(MPI.ANY_SOURCE, {9_000 + self.number})"]

    def involved(self) -> set[int]:
        return {self.rank}

    def renumbered(self, ranks: dict[int, int]) -> Action:
        return self.changed(rank=ranks[self.rank])


@dataclass
class Fork(Action):
    """A rank forks; its child makes memory of its own, gives the parent's copies back, and ends.

    Attributes:
        rank: of the world.
        ending: of the child: `os._exit` or `sys.exit`.
        size: bytes of memory on both sides.
    """

    kind = "fork"
    needs = frozenset({"fork"})

    rank: int
    ending: str
    size: int

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        if lane or composer.program.lanes > 1:
            return
        rng = composer.rng
        ending = rng.choice(("os._exit", "sys.exit"))
        made = cls(composer.number(), lane, rng.randrange(composer.program.size), ending, rng.choice((10, 5000, 200_000)))
        composer.add(made)
        composer.step(made, "fork")
        yield None
        composer.step(made, "reap")

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        return [self.rank]

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        p, k, m = self.name("p"), self.name("k"), self.name("m")
        if phase == "reap":
            return [f"reap({p}, 10)", f"check('memory beside a child', {k}, data({self.number}, {self.size}))",
                    f"check('memory made beside a child', {m}, data({self.number}1, {self.size}))"]  # fmt: skip
        return [
            f"{k} = filled(data({self.number}, {self.size}))",
            f"{p} = os.fork()",
            f"if {p} == 0:",
            f"    {m} = [filled(bytes([170]) * {self.size}) for _ in range(3)]",
            f"    del {m}, {k}",
            f"    {self.ending}(0)",
            f"{m} = filled(data({self.number}1, {self.size}))",
        ]

    def involved(self) -> set[int]:
        return {self.rank}

    def renumbered(self, ranks: dict[int, int]) -> Action:
        return self.changed(rank=ranks[self.rank])

    def simpler(self) -> Iterator[Action]:
        if self.size > 10:
            yield self.changed(size=10)


@dataclass
class Interruption(Action):
    """An exception from a signal's handler ends a blocking call in a communicator of its own.

    What was to be sent arrives whole, or not at all; a receive that was ended takes its message or leaves it.  After that no
    memory of the call is touched, and the messages behind it come as ever (MPI knows no interrupted call: these are the
    rules that a Python program needs, and that any library keeps whose calls are not interrupted at all).

    Attributes:
        source, dest: ranks of the world.
        what: `send`, `ssend`, `recv`, `mrecv`, `probe`.
        size: bytes.
        seconds: until the exception.
        late: seconds that the other side lets pass.
    """

    kind = "interruption"
    needs = frozenset({"signals"})

    source: int
    dest: int
    what: str
    size: int
    seconds: float
    late: float

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        rng = composer.rng
        if composer.program.size < 2 or lane:
            return
        source, dest = rng.sample(range(composer.program.size), 2)
        seconds = rng.choice((0.0001, 0.0003, 0.001, 0.003))
        what = rng.choice(("send", "send", "ssend", "recv", "mrecv", "mrecv", "probe"))
        late = rng.choice((0, seconds, 2 * seconds, 0.01))
        size = rng.choice((composer.size(), composer.size(), rng.randint(100_000, composer.setting.largest)))
        made = cls(composer.number(), lane, source, dest, what, size, seconds, late)
        composer.add(made)
        composer.step(made, "interruption")
        return
        yield

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        return program.everybody

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        c, a, b, n, size = self.name("c"), self.name("a"), self.name("b"), self.number, self.size
        lines = [f"{c} = comm.Dup()"]
        spec, got = f"[{a}, {size}, MPI.BYTE]", f"[{b}, {size}, MPI.BYTE]"
        payload = f"data({n}, {size})"
        sends = self.what in ("send", "ssend")
        if rank == self.source and sends:
            lines += [f"{a} = filled({payload})"]
            lines += [f"interrupt(lambda: {c}.{self.what.capitalize()}({spec}, {self.dest}, 1), {self.seconds})"]
            # The memory is the program's again; what follows must not be damaged by what is left of the call.
            lines += [f"wipe({a})", f"{a} = None", f"{b} = filled(data({n}1, {size}))"]
            lines += [
                f"{c}.Send({got}, {self.dest}, 2)",
                f"{c}.Barrier()",
                f"check('memory after an interruption', {b}, data({n}1, {size}))",
            ]
        elif rank == self.source:
            lines += [f"time.sleep({self.late})", f"{a} = filled({payload})", f"q = {c}.Isend({spec}, {self.dest}, 1)"]
            lines += [f"{c}.Send([filled(data({n}1, {size})), {size}, MPI.BYTE], {self.dest}, 2)"]
            lines += [f"if {c}.recv(None, {self.dest}, 3): q.Wait()", "else: q.Free()", f"{c}.Barrier()"]
        elif rank == self.dest:
            lines += [f"time.sleep({self.late})"] if sends else []
            lines += [f"{b} = filled(bytes([238]) * {size})"]
            if sends:
                lines += [f"st = MPI.Status(); {c}.Probe({self.source}, MPI.ANY_TAG, st)", "if st.Get_tag() == 1:"]
                lines += [f"    {c}.Recv({got}, {self.source}, 1)", f"    check('interrupted send {n}', {b}, {payload})"]
                lines += [
                    f"{c}.Recv({got}, {self.source}, 2)",
                    f"check('send {n} after an interruption', {b}, data({n}1, {size}))",
                ]
            elif self.what == "probe":
                lines += [
                    f"interrupt(lambda: {c}.Probe({self.source}, 1), {self.seconds})",
                    f"{c}.Recv({got}, {self.source}, 1)",
                ]
                lines += [f"check('message {n} after an interrupted probe', {b}, {payload})"]
                lines += [f"{c}.Recv({got}, {self.source}, 2); check('message {n}', {b}, data({n}1, {size}))"]
                lines += [f"{c}.send(True, {self.source}, 3)"]
            else:
                call = f"{c}.Recv({got}, {self.source}, 1)"
                if self.what == "mrecv":
                    lines.append(f"m = {c}.Mprobe({self.source}, 1)")
                    call = f"m.Recv({got})"
                lines += [f"late_{n} = interrupt(lambda: {call}, {self.seconds})"]
                lines += [f"if not late_{n}: check('message {n}', {b}, {payload})", f"wipe({b})"]
                lines += [f"{a} = filled(bytes([7]) * {size})"]
                lines += [f"x = filled(bytes({size})); {c}.Recv([x, {size}, MPI.BYTE], {self.source}, 2)"]
                lines += [f"check('message behind an interrupted receive {n}', x, data({n}1, {size}))"]
                # What was not received may still be there.
                there = f"{c}.Iprobe({self.source}, 1)"
                if self.what == "recv":
                    lines += [f"if late_{n} and {there}: {c}.Recv([x, {size}, MPI.BYTE], {self.source}, 1); late_{n} = False"]
                lines += [f"{c}.send(not late_{n}, {self.source}, 3)"]
                lines += [f"check('memory of an interrupted receive', {b}, bytes({size}))"]
                lines += [f"check('memory beside an interrupted receive', {a}, bytes([7]) * {size})"]
            lines.append(f"{c}.Barrier()")
        else:
            lines.append(f"{c}.Barrier()")
        return [*lines, f"{c}.Free()"]

    def involved(self) -> set[int]:
        return {self.source, self.dest}

    def renumbered(self, ranks: dict[int, int]) -> Action:
        return self.changed(source=ranks[self.source], dest=ranks[self.dest])

    def simpler(self) -> Iterator[Action]:
        for size in (4, 100, self.size // 10, self.size // 2, self.size * 9 // 10):
            if size < self.size:
                yield self.changed(size=size)
