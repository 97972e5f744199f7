"""Communicators made in every way, and freed while operations on them are under way (MPI-4.1, chapter 7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ompy.testing.fuzz.actions.message import communicator_of
from ompy.testing.fuzz.program import Action, Program

if TYPE_CHECKING:
    from ompy.testing.fuzz.generator import Composer, Plot

WAYS = ("Dup", "Dup", "Idup", "Split", "Create", "Create_group", "Cart", "Graph", "Dist_graph", "Merge", "Session")
MOST_AT_ONCE = 6


@dataclass
class Communicator(Action):
    """A communicator: made by phase `make`, freed by phase `free`.

    Attributes:
        parent: an action that made one, or -1.
        way: one of WAYS.
        members: ranks of the world, in the new one's order.
        freed: by `Free` or `Disconnect`.
    """

    kind = "communicator"

    parent: int
    way: str
    members: list[int]
    freed: str = "Free"

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        rng = composer.rng
        known = composer.communicators[lane]
        if len(known) >= MOST_AT_ONCE:
            return
        parent = composer.communicator(lane)
        members = list(composer.program.group(parent))
        way = rng.choice(WAYS)
        if way == "Session" and ("sessions" not in composer.setting.features or parent >= 0):
            way = "Dup"
        if way == "Merge" and len(members) < 2:
            way = "Dup"
        if way in ("Split", "Create", "Create_group"):
            members = rng.sample(members, rng.randint(1, len(members)))
        elif way == "Merge":
            half = rng.randint(1, len(members) - 1)
            # Those with high=True come second.
            members = members[half:] + members[:half]
        made = cls(composer.number(), lane, parent, way, members, "Free")
        composer.add(made)
        composer.step(made, "make")
        known.append(made.number)
        composer.hold(made.number)
        yield None
        yield None
        composer.release(made.number)
        yield lambda: composer.quiet(lane, made.number)
        known.remove(made.number)
        if rng.random() < 0.15:
            # Disconnect waits for what is under way (11.10.4), so that nothing may be.
            made.freed = "Disconnect"
            yield lambda: composer.settled(lane, made.number)
        composer.step(made, "free")

    def group(self) -> list[int]:
        return self.members

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        if phase == "make" and self.way != "Create_group":
            return program.group(self.parent)
        return self.members

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        c = self.name("c")
        if phase == "free":
            return [f"{c}.{self.freed}()"]
        parent, group = communicator_of(self.parent), program.group(self.parent)
        places = [group.index(member) for member in self.members]
        size = len(self.members)
        ours = rank in self.members
        if self.way == "Dup" or (self.way == "Merge" and places == sorted(places)):
            # A merge of which one side was dropped has nothing to merge.
            lines = [f"{c} = {parent}.Dup()"]
        elif self.way == "Idup":
            lines = [f"{c}, q = {parent}.Idup(); q.Wait()"]
        elif self.way == "Split":
            colour, key = ("7", self.members.index(rank)) if ours else ("MPI.UNDEFINED", 0)
            lines = [f"{c} = {parent}.Split({colour}, {key})"]
        elif self.way in ("Create", "Create_group"):
            lines = [f"g = {parent}.Get_group().Incl({places})"]
            more = f", {self.number}" if self.way == "Create_group" else ""
            lines.append(f"{c} = {parent}.{self.way}(g{more})")
        elif self.way == "Cart":
            lines = [f"{c} = {parent}.Create_cart([{size}], [True], False)"]
            lines.append(f"equal('shift', {c}.Shift(0, 1), ({(places[self.members.index(rank)] - 1) % size}, "
                         f"{(places[self.members.index(rank)] + 1) % size}))")  # fmt: skip
        elif self.way == "Graph":
            index, edges = list(range(1, size + 1)), [(k + 1) % size for k in range(size)]
            lines = [f"{c} = {parent}.Create_graph({index}, {edges}, False)"]
        elif self.way == "Dist_graph":
            me = places[self.members.index(rank)]
            lines = [f"{c} = {parent}.Create_dist_graph_adjacent([{(me - 1) % size}], [{(me + 1) % size}], reorder=False)"]
        elif self.way == "Session":
            lines = ["session = MPI.Session.Init()", "g = session.Create_group('mpi://WORLD')"]
            lines.append(f"{c} = MPI.Intracomm.Create_from_group(g, 'fuzz {self.number}')")
            lines.append("g.Free(); session.Finalize()")
            return lines
        else:
            # The later ones of the old order come first.
            half = group.index(self.members[-1]) + 1
            second = group.index(rank) < half
            lines = [f"half = {parent}.Split({int(second)})"]
            lines.append(f"inter = half.Create_intercomm(0, {parent}, {half if second else 0}, {self.number})")
            lines.append(f"equal('sizes', (inter.Get_size(), inter.Get_remote_size()), "
                         f"({half if second else size - half}, {size - half if second else half}))")  # fmt: skip
            lines.append(f"{c} = inter.Merge({second}); inter.Free(); half.Free()")
        if ours:
            lines.append(f"equal('rank, size', ({c}.rank, {c}.size), ({self.members.index(rank)}, {size}))")
        else:
            lines.append(f"equal('communicator', {c}, MPI.COMM_NULL)")
        return lines

    def used(self) -> set[int]:
        return {self.parent} - {-1}

    def renumbered(self, ranks: dict[int, int]) -> Action:
        return self.changed(members=[ranks[member] for member in self.members if member in ranks])

    def simpler(self) -> Iterator[Action]:
        if self.way in ("Idup", "Cart", "Graph", "Dist_graph", "Session"):
            yield self.changed(way="Dup")
        if self.freed != "Free":
            yield self.changed(freed="Free")
