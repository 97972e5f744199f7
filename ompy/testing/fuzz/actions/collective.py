"""Collectives: every function, blocking, non-blocking and persistent, in place, with every root (MPI-4.1, chapter 6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ompy.testing.fuzz.actions.message import communicator_of
from ompy.testing.fuzz.program import Action, Program

if TYPE_CHECKING:
    from ompy.testing.fuzz.generator import Composer, Plot

ROOTED = ("Bcast", "Gather", "Scatter", "Gatherv", "Scatterv", "Reduce")
REDUCING = ("Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block", "Scan", "Exscan")
MOVING = ("Bcast", "Gather", "Scatter", "Allgather", "Alltoall", "Gatherv", "Scatterv", "Allgatherv", "Alltoallv", "Alltoallw")
FUNCTIONS = ("Barrier", *MOVING, *REDUCING)
IN_PLACE = ("Gather", "Scatter", "Allgather", "Alltoall", "Gatherv", "Scatterv", "Allgatherv", "Alltoallv",
            "Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block", "Scan", "Exscan")  # fmt: skip
OPERATIONS = {
    "i": ("SUM", "MAX", "MIN", "BAND", "BOR", "BXOR", "LAND", "LOR"),
    "q": ("SUM", "PROD", "MAX", "MIN", "BAND", "BOR", "BXOR", "LXOR", "compose"),
    "d": ("SUM", "PROD", "MAX", "MIN"),
}
TYPES = {"i": "MPI.INT", "q": "MPI.INT64_T", "d": "MPI.DOUBLE"}
WIDTHS = {"i": 4, "q": 8, "d": 8}
STARTS = "uvw"  # a name for the request of each start of a persistent one
# Bytes of a rank's part; elements of a reduction, whose expectation is reckoned in Python.
MOST_BYTES, MOST_ELEMENTS = 300_000, 20_000


@dataclass
class Collective(Action):
    """One call of a collective by all members of a communicator.

    Attributes:
        communicator: an action that made one, or -1.
        function: as mpi4py calls the blocking form.
        form: `blocking`, `nonblocking` or `persistent`.
        root: index in the communicator.
        count: bytes, or elements of a reduction, of each rank's part.
        stride: what the counts of forms with counts for each rank grow by.
        inplace: with MPI.IN_PLACE where it may stand.
        code, operation: of a reduction.
        starts: of a persistent one.
    """

    kind = "collective"

    communicator: int
    function: str
    form: str = "blocking"
    root: int = 0
    count: int = 0
    stride: int = 0
    inplace: bool = False
    code: str = "i"
    operation: str = "SUM"
    starts: int = 1

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        rng = composer.rng
        communicator = composer.communicator(lane)
        members = composer.program.group(communicator)
        made = cls(composer.number(), lane, communicator, rng.choice(FUNCTIONS), root=rng.randrange(len(members)))
        made.form = rng.choice(("blocking", "blocking", "nonblocking", "persistent"))
        made.count = composer.size(MOST_BYTES) // (1 if made.function in ("Bcast",) else len(members))
        made.stride = rng.choice((0, 1, 5, 40))
        made.inplace = made.function in IN_PLACE and rng.random() < 0.3
        if made.function in REDUCING:
            made.code = rng.choice(list(OPERATIONS))
            made.operation = rng.choice(OPERATIONS[made.code])
            made.count = min(composer.size(MOST_BYTES) // WIDTHS[made.code], MOST_ELEMENTS)
            if made.operation == "compose":
                made.count, made.stride = made.count // 2 * 2, made.stride // 2 * 2
        if made.form == "persistent":
            made.starts = rng.randint(1, 3)
        composer.add(made)
        if made.form == "blocking":
            composer.step(made, "call")
            return
        if made.form == "nonblocking":
            composer.step(made, "begin")
            for rank in members:
                composer.begun(made, "u", rank)
            return
        held = rng.random() < 0.8 or "start after free" not in composer.setting.features
        if held:
            composer.hold(communicator)
        composer.step(made, "init")
        for letter in STARTS[: made.starts]:
            yield None
            composer.step(made, f"start {letter}")
            for rank in members:
                composer.begun(made, letter, rank)
            yield composer.over(made, letter, *members)
        if held:
            composer.release(communicator)

    # -- what it does

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        return program.group(self.communicator)

    def counts(self, size: int) -> list[int]:
        """Each rank's count, of the forms that take them."""
        if self.operation == "compose":
            return [self.count + 2 * (k % 2) for k in range(size)]
        return [self.count + (k * self.stride) % 41 for k in range(size)]

    def seed(self, i: int, j: int, letter: str) -> str:
        return f"data({self.number}{STARTS.index(letter)}{i:02}{j:02}, "

    def part(self, i: int, j: int, n: int, letter: str) -> str:
        """What rank i sends rank j."""
        return f"{self.seed(i, j, letter)}{n})"

    def contribution(self, i: int, n: int, letter: str) -> str:
        """What rank i gives to a reduction, as an array."""
        return f"numbers({self.number}{STARTS.index(letter)}{i:02}, {n}, {self.code!r})"

    def reduced(self, size: int, n: int, letter: str, begin: int = 0, end: int | None = None) -> str:
        parts = ", ".join(self.contribution(i, n, letter) for i in range(size))
        cut = "" if end is None else f"[{begin}:{end}]"
        return f"reduced({self.operation!r}, [{parts}]){cut}"

    def arguments(self, me: int, size: int, letter: str) -> tuple[list[str], list[str], str]:
        """What fills the buffers before the call, its arguments, and the expected content of `b`; empty: none."""
        name, n, root = self.function, self.count, self.root
        a, b = self.name("a"), self.name("b")
        ours = me == root
        counts, starts = self.counts(size), [0] * size
        for k in range(1, size):
            starts[k] = starts[k - 1] + counts[k - 1]

        def blank(length: int) -> str:
            return f"{b} = bytearray([238]) * {length}"

        def joined(parts: Sequence[str]) -> str:
            return " + ".join(parts) or 'b""'

        if name == "Barrier":
            return [], [], ""
        if name == "Bcast":
            value = self.part(root, 0, n, letter)
            return [f"{b} = bytearray({value})" if ours else blank(n)], [f"[{b}, {n}, MPI.BYTE]", str(root)], value
        if name in REDUCING:
            return self.reduction(me, size, letter, counts, starts)
        if name.endswith("v") or name == "Alltoallw":
            return self.varying(me, size, letter, counts, starts)
        mine = [f"{a} = bytearray({joined([self.part(me, j, n, letter) for j in range(size)])})"]
        if name in ("Gather", "Allgather"):
            receives = ours or name == "Allgather"
            expected = joined([self.part(i, 0, n, letter) for i in range(size)])
            setup = [f"{a} = bytearray({self.part(me, 0, n, letter)})"]
            sent, got = f"[{a}, {n}, MPI.BYTE]", f"[{b}, {n}, MPI.BYTE]"
            if receives:
                setup.append(blank(n * size))
            if self.inplace and receives:
                setup.append(f"{b}[{me * n}:{(me + 1) * n}] = {a}")
                sent = "MPI.IN_PLACE"
            arguments = [sent, got if receives else "None"] + ([str(root)] if name == "Gather" else [])
            return setup, arguments, expected if receives else ""
        if name == "Scatter":
            setup = mine if ours else []
            got = f"[{b}, {n}, MPI.BYTE]"
            if self.inplace and ours:
                return setup, [f"[{a}, {n}, MPI.BYTE]", "MPI.IN_PLACE", str(root)], ""
            setup = [*setup, blank(n)]
            return setup, [f"[{a}, {n}, MPI.BYTE]" if ours else "None", got, str(root)], self.part(root, me, n, letter)
        expected = joined([self.part(i, me, n, letter) for i in range(size)])
        if self.inplace:
            return [mine[0].replace(a, b, 1)], ["MPI.IN_PLACE", f"[{b}, {n}, MPI.BYTE]"], expected
        return [*mine, blank(n * size)], [f"[{a}, {n}, MPI.BYTE]", f"[{b}, {n}, MPI.BYTE]"], expected

    def varying(
        self, me: int, size: int, letter: str, counts: list[int], starts: list[int]
    ) -> tuple[list[str], list[str], str]:
        """The forms with a count for each rank; rank k's part has counts[k] bytes, or of Alltoall counts[i + j]."""
        name, root = self.function, self.root
        a, b = self.name("a"), self.name("b")
        ours = me == root
        whole = f"({counts}, {starts}), MPI.BYTE"

        def joined(parts: Sequence[str]) -> str:
            return " + ".join(parts) or 'b""'

        if name.startswith("Alltoall"):
            lengths = [counts[(me + j) % size] for j in range(size)]
            places = [sum(lengths[:j]) for j in range(size)]
            setup = [f"{a} = bytearray({joined([self.part(me, j, lengths[j], letter) for j in range(size)])})"]
            expected = joined([self.part(j, me, lengths[j], letter) for j in range(size)])
            spec = f"({lengths}, {places}), MPI.BYTE" if name == "Alltoallv" else f"({lengths}, {places}), [MPI.BYTE] * {size}"
            if name == "Alltoallw":
                spec = f"{lengths}, {places}, [MPI.BYTE] * {size}"
            if self.inplace and name == "Alltoallv":
                return [setup[0].replace(a, b, 1)], ["MPI.IN_PLACE", f"[{b}, {spec}]"], expected
            setup.append(f"{b} = bytearray([238]) * {sum(lengths)}")
            return setup, [f"[{a}, {spec}]", f"[{b}, {spec}]"], expected
        if name == "Scatterv":
            setup = []
            if ours:
                setup = [f"{a} = bytearray({joined([self.part(root, j, counts[j], letter) for j in range(size)])})"]
                if self.inplace:
                    return setup, [f"[{a}, {whole}]", "MPI.IN_PLACE", str(root)], ""
            setup.append(f"{b} = bytearray([238]) * {counts[me]}")
            sent = f"[{a}, {whole}]" if ours else "None"
            return setup, [sent, f"[{b}, {counts[me]}, MPI.BYTE]", str(root)], self.part(root, me, counts[me], letter)
        receives = ours or name == "Allgatherv"
        setup = [f"{a} = bytearray({self.part(me, 0, counts[me], letter)})"]
        sent = f"[{a}, {counts[me]}, MPI.BYTE]"
        if receives:
            setup.append(f"{b} = bytearray([238]) * {sum(counts)}")
            if self.inplace:
                setup.append(f"{b}[{starts[me]}:{starts[me] + counts[me]}] = {a}")
                sent = "MPI.IN_PLACE"
        expected = joined([self.part(i, 0, counts[i], letter) for i in range(size)])
        arguments = [sent, f"[{b}, {whole}]" if receives else "None"] + ([str(root)] if name == "Gatherv" else [])
        return setup, arguments, expected if receives else ""

    def reduction(
        self, me: int, size: int, letter: str, counts: list[int], starts: list[int]
    ) -> tuple[list[str], list[str], str]:
        name, n, root = self.function, self.count, self.root
        a, b, t = self.name("a"), self.name("b"), TYPES[self.code]
        given = got = n
        expected = ""
        if name in ("Reduce", "Allreduce"):
            expected = self.reduced(size, n, letter) if name == "Allreduce" or me == root else ""
        elif name == "Reduce_scatter_block":
            given = n * size
            expected = self.reduced(size, given, letter, me * n, me * n + n)
        elif name == "Reduce_scatter":
            given, got = sum(counts), counts[me]
            expected = self.reduced(size, given, letter, starts[me], starts[me] + got)
        elif name == "Scan":
            expected = self.reduced(me + 1, n, letter)
        elif me:
            expected = self.reduced(me, n, letter)
        operation = "MPI.Op.Create(compose, False)" if self.operation == "compose" else f"MPI.{self.operation}"
        value = self.contribution(me, given, letter)
        receives = expected != "" or name == "Exscan"
        if self.inplace and receives:
            setup, sent, room = [f"{b} = {value}"], "MPI.IN_PLACE", given
        else:
            setup, sent, room = [f"{a} = {value}"], f"[{a}, {given}, {t}]", got
            if receives:
                setup.append(f"{b} = numbers(0, {got}, {self.code!r})")
        if self.inplace and name.startswith("Reduce_scatter"):
            expected += f" + {b}[{got}:]"
        if operation.endswith("False)"):
            setup.append(f"{self.name('o')} = {operation}")
            operation = self.name("o")
        if name == "Reduce_scatter_block":
            # Of buffers with a block for each rank, mpi4py takes the count of one.
            room, sent = n, sent if sent == "MPI.IN_PLACE" else f"[{a}, {n}, {t}]"
        target = f"[{b}, {room}, {t}]" if receives else "None"
        more = [str(counts)] if name == "Reduce_scatter" else []
        return setup, [sent, target, *more, operation, *([str(root)] if name == "Reduce" else [])], expected

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        group = program.group(self.communicator)
        me, comm = group.index(rank), communicator_of(self.communicator)
        word, _, letter = phase.partition(" ")
        setup, arguments, _ = self.arguments(me, len(group), letter or "u")
        # mpi4py passes counts and operations of reductions by position, like MPI.
        listed = ", ".join(arguments)
        if word == "call":
            return [*setup, f"{comm}.{self.function}({listed})", *self.checks(me, len(group), "u")]
        if word == "begin":
            return [*setup, f"{self.name('u')} = {comm}.I{self.function.lower()}({listed})"]
        if word == "init":
            return [*setup, f"{self.name('q')} = {comm}.{self.function}_init({listed})"]
        again = [self.refilled(line) for line in setup if not line.startswith(self.name("o"))]
        return [*again, f"{self.name(letter)} = {self.name('q')}; {self.name('q')}.Start()"]

    @staticmethod
    def refilled(line: str) -> str:
        """What fills a buffer that a persistent request knows."""
        name, _, value = line.partition(" = ")
        return line if name.endswith("]") else f"refill({name}, {value})"

    def checks(self, me: int, size: int, letter: str) -> list[str]:
        _, _, expected = self.arguments(me, size, letter)
        return [f"check('{self.function} {self.number}', {self.name('b')}, {expected})"] if expected else []

    def completed(self, program: Program, token: str, status: str, rank: int) -> list[str]:
        group = program.group(self.communicator)
        lines = self.checks(group.index(rank), len(group), token)
        if self.form == "persistent" and token == STARTS[self.starts - 1]:
            lines.append(f"{self.name('q')}.Free()")
        return lines

    # -- shrinking

    def used(self) -> set[int]:
        return {self.communicator} - {-1}

    def renumbered(self, ranks: dict[int, int]) -> Action:
        return self.changed(root=min(self.root, len(ranks) - 1))

    def simpler(self) -> Iterator[Action]:
        for count in (1, 2, 10, self.count // 10, self.count // 2, self.count * 9 // 10):
            if count < self.count:
                yield self.changed(count=count // 2 * 2 if self.operation == "compose" else count)
        if self.stride:
            yield self.changed(stride=0)
        if self.inplace:
            yield self.changed(inplace=False)
        if self.function in REDUCING and (self.code, self.operation) != ("i", "SUM"):
            yield self.changed(code="i", operation="SUM")
        if self.root:
            yield self.changed(root=0)
