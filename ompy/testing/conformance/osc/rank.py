"""A rank of a job whose windows the component under test serves."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from ompy.mca import discovery, loading, selection
from ompy.mca.component import Context, Offer, Refusal
from ompy.testing.conformance.check import Breach
from ompy.testing.conformance.mpi.rank import MpiRank, watch_queries
from ompy.testing.conformance.wire import Wire

FLAVORS = ("create", "allocate", "shared", "dynamic")
FORCED = 1 << 30  # priority
# Bytes of an element of the kit's own windows, and the code of its type.
WIDTH: Final = 8
CODE: Final = "q"


def numbers(start: int, count: int) -> array[int]:
    """So many elements that nobody else has."""
    return array(CODE, range(start, start + count))


class Forcer:
    """A watcher of queries, by which the component under test serves every window that it offers itself for."""

    def __init__(self, name: str) -> None:
        self.name = name

    def ompy_query(self, context: Context) -> Generator[None, Offer | Refusal, Offer | Refusal]:
        answer = yield
        if (context.component.framework, context.component.name) == ("osc", self.name) and isinstance(answer, Offer):
            answer.priority = FORCED
        return answer


class Opened:
    """A window of elements of eight bytes, and what its owner sees of it.

    Attributes:
        win: MPI's.
        memory: this rank's elements.
        addresses: of each rank's memory, where displacements are addresses; else None.
    """

    def __init__(self, win: Any, memory: memoryview, addresses: Sequence[int] | None) -> None:
        self.win = win
        self.memory = memory
        self.addresses = addresses

    def place(self, target: int, index: int) -> int:
        """The displacement of an element."""
        return index if self.addresses is None else self.addresses[target] + WIDTH * index


class OscRank(MpiRank):
    """One rank.

    Attributes:
        flavors: those that the component serves.
    """

    def __init__(self, wire: Wire) -> None:
        watch_queries(Forcer(wire.setting.component))
        super().__init__(wire)
        found = discovery.installed()["osc"][wire.setting.component]
        declared: Any = loading.load(found).component.capabilities.get("flavors", FLAVORS)
        self.declared: Mapping[str, object] = declared if isinstance(declared, Mapping) else dict.fromkeys(declared, True)
        self.flavors: list[str] = []
        for flavor in self.declared:
            win, _, _ = self.make(flavor, self.size + 1, WIDTH, self.comm)
            if self.server() == wire.setting.component:
                self.flavors.append(flavor)
            elif self.declared[flavor] is True:
                reason = next((it.reason for it in selection.verdicts("osc") if it.component == wire.setting.component), "")
                words = f"it declares to serve windows of {flavor}, which {self.server()} serves: {reason}"
                raise Breach("choice", words)
            win.Free()

    def server(self) -> str:
        """Who serves the window that was made last."""
        return next((verdict.component for verdict in selection.verdicts("osc") if verdict.chosen), "nobody")

    # -- windows

    def make(self, flavor: str, count: int, unit: int, comm: Any) -> tuple[Any, memoryview, list[int]]:
        """A window of `count` elements on each rank, its memory, and in a dynamic one everybody's addresses."""
        MPI = self.MPI
        nbytes = count * WIDTH
        memory = memoryview(bytearray(nbytes))
        if flavor == "create":
            win = MPI.Win.Create(memory, unit, comm=comm)
        elif flavor == "dynamic":
            win = MPI.Win.Create_dynamic(comm=comm)
            if nbytes:
                win.Attach(memory)
            return win, memory.cast(CODE), comm.allgather(MPI.Get_address(memory) if nbytes else 0)
        else:
            make = MPI.Win.Allocate if flavor == "allocate" else MPI.Win.Allocate_shared
            win = make(nbytes, unit, comm=comm)
            memory = memoryview(win.tomemory()).cast("B")
        return win, memory.cast(CODE), []

    @contextmanager
    def window(self, flavor: str, count: int, comm: Any = None) -> Iterator[Opened]:
        """A window of `count` elements on each rank that the component serves; it is freed afterwards."""
        win, memory, addresses = self.make(flavor, count, WIDTH, comm or self.comm)
        if self.server() != self.wire.setting.component:
            raise Breach("choice", f"a window of {flavor} is served by {self.server()}, and the one before it was not")
        yield Opened(win, memory, addresses or None)
        win.Free()

    def everywhere(self, count: int) -> Iterator[tuple[str, Opened]]:
        """A window of each flavor in turn."""
        for flavor in self.flavors:
            with self.window(flavor, count) as opened:
                yield flavor, opened
            self.alive()

    def group(self, *ranks: int) -> Any:
        return self.comm.Get_group().Incl(list(ranks))

    # -- judging

    def compare(self, got: Sequence[int], wanted: Sequence[int], clause: str, words: str) -> None:
        if list(got) != list(wanted):
            at = next(index for index, (one, other) in enumerate(zip(got, wanted, strict=True)) if one != other)
            raise Breach(clause, f"{words}: element {at} is {got[at]}, where {wanted[at]} is due")

    def refused(self, clause: str, classes: Sequence[str], words: str, call: Callable[..., object], *arguments: object) -> None:
        """The call raises an error of one of the classes."""
        try:
            call(*arguments)
        except self.MPI.Exception as error:
            known = {getattr(self.MPI, name): name for name in dir(self.MPI) if name.startswith("ERR_")}
            found = known.get(error.Get_error_class(), "?")
            if found not in classes:
                raise Breach(clause, f"{words} is {found} ({error}), and not {' or '.join(classes)}") from None
            return
        raise Breach(clause, f"{words} is not refused: {' or '.join(classes)} is due")
