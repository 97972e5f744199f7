"""Attributes, error handlers, groups, erroneous calls, flushes of buffers, and handles by the hundred."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ompy.testing.fuzz.actions.message import communicator_of
from ompy.testing.fuzz.program import Action, Program

if TYPE_CHECKING:
    from ompy.testing.fuzz.generator import Composer, Plot

ERRORS = {
    "rank": ("{c}.Send([bytearray(1), 1, MPI.BYTE], {c}.size, 0)", "MPI.ERR_RANK"),
    "tag": ("{c}.Irecv([bytearray(1), 1, MPI.BYTE], 0, -7)", "MPI.ERR_TAG"),
    "root": ("{c}.Bcast([bytearray(1), 1, MPI.BYTE], {c}.size)", "MPI.ERR_ROOT"),
    "handle": ("MPI.COMM_NULL.Barrier()", "MPI.ERR_COMM"),
}
# Calls whose lengths no memory has; what libraries other than ompy do with them ranges to a crash.
OVERFLOWS = (
    "{c}.Allgather([bytearray(8), 8, MPI.BYTE], [bytearray(16), 1 << 62, MPI.DOUBLE])",
    "{c}.Alltoall([bytearray(8), 1 << 62, MPI.BYTE], [bytearray(16), 1 << 62, MPI.BYTE])",
    "{c}.Gather([bytearray(8), 1 << 61, MPI.DOUBLE], [bytearray(16), 1 << 61, MPI.DOUBLE], 0)",
)


@dataclass
class Handles(Action):
    """Something about handles that all members of a communicator do.

    Attributes:
        communicator: an action that made one, or -1.
        what: `attributes`, `groups`, `error`, `handler`, `overflow`, `alias`, `many`.
        which: of several.
        count: of communicators made at once.
    """

    kind = "handles"

    communicator: int
    what: str
    which: int
    count: int

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        rng = composer.rng
        kinds = ["attributes", "groups", "error", "handler", "many"] + ["overflow", "alias"] * (
            "errors" in composer.setting.features
        )
        communicator = composer.communicator(lane)
        count = rng.choice((3, 10, 40)) if rng.random() < 0.98 else 450
        made = cls(composer.number(), lane, communicator, rng.choice(kinds), rng.randrange(12), count)
        composer.add(made)
        composer.step(made, "handles")
        return
        yield

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        return program.group(self.communicator)

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        group, parent, n = program.group(self.communicator), communicator_of(self.communicator), self.number
        c, size = self.name("c"), len(group)
        lines = [f"{c} = {parent}.Dup()"]
        if self.what == "attributes":
            lines += [
                "calls = []",
                "key = MPI.Comm.Create_keyval(lambda o, k, v: v + 1, lambda o, k, v: calls.append(v))",
                f"{c}.Set_attr(key, {n})", f"d = {c}.Dup()",
                f"equal('copied attribute', (d.Get_attr(key), {c}.Get_attr(key)), ({n + 1}, {n}))",
                f"{c}.Delete_attr(key); equal('attribute', {c}.Get_attr(key), None)", "d.Free()",
                f"equal('deleted attributes', calls, [{n}, {n + 1}]); MPI.Comm.Free_keyval(key)",
            ]  # fmt: skip
        elif self.what == "groups":
            k = self.which % size
            lines += [
                f"g = {c}.Get_group(); h = g.Incl([{k}]); i = g.Excl([{k}])",
                f"u = MPI.Group.Union(h, i); places = u.Translate_ranks(list(range({size})), g)",
                f"equal('union', list(places), {[k, *(j for j in range(size) if j != k)]})",
                f"equal('comparison', MPI.Group.Compare(u, g), {'MPI.IDENT' if k == 0 else 'MPI.SIMILAR'})",
                "for x in (g, h, i, u): x.Free()",
            ]
        elif self.what == "error":
            names = sorted(ERRORS)
            call, kind = ERRORS[names[self.which % len(names)]]
            lines += [f"{c}.Set_errhandler(MPI.ERRORS_RETURN)"]
            lines.append(f"expect_error('erroneous call', lambda: {call.format(c=c)}, [{kind}])")
        elif self.what == "handler":
            lines += [
                "told = []", "handler = MPI.Comm.Create_errhandler(lambda o, code: told.append(MPI.Get_error_class(code)))",
                f"{c}.Set_errhandler(handler); handler.Free()",
                f"try: {c}.Send([bytearray(1), 1, MPI.BYTE], {c}.size, 0)", "except MPI.Exception: pass",
                "equal('error handler', told, [MPI.ERR_RANK])",
            ]  # fmt: skip
        elif self.what == "overflow":
            call = OVERFLOWS[self.which % len(OVERFLOWS)].format(c=c)
            lines += ["try:", f"    {call}", "except (MPI.Exception, ValueError, OverflowError, MemoryError): pass",
                      "else: raise AssertionError('a length that no memory has: no error')"]  # fmt: skip
        elif self.what == "alias":
            lines += [f"d = {c}.Dup(); alias = MPI.Intracomm(d); d.Free()", "try: alias.Iprobe()", "except MPI.Exception: pass",
                      "try: alias.Isend([bytearray(1), 1, MPI.BYTE], 0, 0)", "except MPI.Exception: pass"]  # fmt: skip
        else:
            lines += [f"many = [{c}.Dup() for _ in range({self.count})]", "for x in many: x.Barrier()",
                      f"equal('sums', [x.allreduce(x.rank) for x in many], [{size * (size - 1) // 2}] * {self.count})",
                      "for x in many: x.Free()"]  # fmt: skip
        return [*lines, f"{c}.Free()"]

    def used(self) -> set[int]:
        return {self.communicator} - {-1}

    def simpler(self) -> Iterator[Action]:
        if self.what == "many":
            for count in (1, self.count // 2, self.count * 3 // 4):
                if count < self.count:
                    yield self.changed(count=count)


@dataclass
class Flush(Action):
    """Buffered sends of a process of its own buffer, and requests that tell when it is empty (MPI-4.1, 3.6).

    Attributes:
        source, dest: ranks of the world.
        size: bytes of each message.
        requests: flushes at once.
    """

    kind = "flush"
    needs = frozenset({"mpi4.1"})

    source: int
    dest: int
    size: int
    requests: int

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        rng = composer.rng
        if composer.program.size < 2 or composer.program.lanes > 1:
            return
        source, dest = rng.sample(range(composer.program.size), 2)
        made = cls(composer.number(), lane, source, dest, composer.size(300_000), rng.randint(1, 3))
        composer.add(made)
        composer.step(made, "flush")
        return
        yield

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        return program.everybody

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        c, n, size, f = self.name("c"), self.number, self.size, self.name("f")
        lines = [f"{c} = comm.Dup()"]
        if rank == self.source:
            lines += [f"{c}.Attach_buffer(bytearray({2 * size + 4096}))",
                      *(f"{c}.Bsend([bytearray(data({n}{k}, {size})), {size}, MPI.BYTE], {self.dest}, {k})" for k in (0, 1)),
                      f"{f} = [{c}.Iflush_buffer() for _ in range({self.requests})]", f"{c}.Barrier()",
                      f"MPI.Request.Waitall({f})", f"{c}.Detach_buffer()"]  # fmt: skip
        elif rank == self.dest:
            b = self.name("b")
            lines += [f"{c}.Barrier()", f"{b} = bytearray({size})"]
            for k in (0, 1):
                lines += [
                    f"{c}.Recv([{b}, {size}, MPI.BYTE], {self.source}, {k})",
                    f"check('message {n}', {b}, data({n}{k}, {size}))",
                ]
        else:
            lines.append(f"{c}.Barrier()")
        return [*lines, f"{c}.Free()"]

    def involved(self) -> set[int]:
        return {self.source, self.dest}

    def renumbered(self, ranks: dict[int, int]) -> Action:
        return self.changed(source=ranks[self.source], dest=ranks[self.dest])

    def simpler(self) -> Iterator[Action]:
        for size in (4, self.size // 2):
            if size < self.size:
                yield self.changed(size=size)
        if self.requests > 1:
            yield self.changed(requests=self.requests - 1)
