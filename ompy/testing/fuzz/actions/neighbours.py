"""Neighbourhood collectives on Cartesian and general topologies (MPI-4.1, 8.6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ompy.testing.fuzz.actions.message import communicator_of
from ompy.testing.fuzz.program import Action, Program

if TYPE_CHECKING:
    from ompy.testing.fuzz.generator import Composer, Plot

FUNCTIONS = ("Neighbor_allgather", "Neighbor_allgatherv", "Neighbor_alltoall", "Neighbor_alltoallv", "Neighbor_alltoallw")


@dataclass
class Neighbours(Action):
    """One call on a topology of its own.

    Attributes:
        communicator: an action that made one, or -1.
        function: as mpi4py calls the blocking form.
        form: `blocking`, `nonblocking`, `persistent`.
        shape: `ring` (Cartesian), `line` (Cartesian, with null neighbours), or `graph`: with an edge from k to k + d for
            each d of `distances`.
        distances: of a graph.
        size: bytes of a block.
    """

    kind = "neighbours"

    communicator: int
    function: str
    form: str
    shape: str
    distances: list[int]
    size: int

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        rng = composer.rng
        distances = [rng.randrange(4) for _ in range(rng.randint(0, 3))]
        form = rng.choice(("blocking", "nonblocking", "persistent"))
        made = cls(composer.number(), lane, composer.communicator(lane), rng.choice(FUNCTIONS), form,
                   rng.choice(("ring", "line", "graph", "graph")), distances, composer.size(60_000))  # fmt: skip
        composer.add(made)
        composer.step(made, "neighbours")
        return
        yield

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        return program.group(self.communicator)

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        group, parent, n = program.group(self.communicator), communicator_of(self.communicator), self.number
        c, a, b, k = self.name("c"), self.name("a"), self.name("b"), self.size
        me, size = group.index(rank), len(group)
        # Between two ranks blocks match in the order of the edges (8.6); in a ring of two, left is right.
        if self.shape == "graph":
            sources, targets = [(me - d) % size for d in self.distances], [(me + d) % size for d in self.distances]
            make = f"{parent}.Create_dist_graph_adjacent({sources}, {targets}, reorder=False)"
            edge = list(range(len(self.distances)))
        else:
            left, right = ((me - 1) % size, (me + 1) % size)
            if self.shape == "line":
                left, right = (-1 if me == 0 else left), (-1 if me == size - 1 else right)
            sources = targets = [left, right]
            make = f"{parent}.Create_cart([{size}], [{self.shape == 'ring'}], False)"
            # What the left one sends to its right comes as the left block.
            edge = [1, 0]
        every = "all" in self.function and "gather" in self.function

        def block(source: int, which: int) -> str:
            return f"data({n}{source:02}{0 if every else which}, {k})"

        blocks = len(targets)
        sent = [block(me, which) for which in range(1 if every else blocks)]
        expected = [f"bytes([238]) * {k}" if s < 0 else block(s, edge[at]) for at, s in enumerate(sources)]
        lines = [f"{c} = {make}", f"{a} = bytearray({' + '.join(sent) or 'b' + repr('')})"]
        lines.append(f"{b} = bytearray([238]) * {k * len(sources)}")
        counts, places = [k] * blocks, [k * at for at in range(blocks)]
        varying = f"({counts}, {places}), MPI.BYTE"
        given = {
            "Neighbor_allgather": (f"{k}, MPI.BYTE", f"{k}, MPI.BYTE"),
            "Neighbor_allgatherv": (f"{k}, MPI.BYTE", varying),
            "Neighbor_alltoall": (f"{k}, MPI.BYTE", f"{k}, MPI.BYTE"),
            "Neighbor_alltoallv": (varying, varying),
            "Neighbor_alltoallw": (f"{counts}, {places}, [MPI.BYTE] * {blocks}",) * 2,
        }[self.function]
        arguments = f"[{a}, {given[0]}], [{b}, {given[1]}]"
        if self.form == "blocking":
            lines.append(f"{c}.{self.function}({arguments})")
        elif self.form == "nonblocking":
            lines.append(f"q = {c}.I{self.function.lower()}({arguments}); {c}.Free(); q.Wait()")
        else:
            lines.append(f"q = {c}.{self.function}_init({arguments}); q.Start(); q.Wait(); q.Start(); q.Wait(); q.Free()")
        if expected:
            lines.append(f"check('{self.function} {n}', {b}, {' + '.join(expected)})")
        return lines if self.form == "nonblocking" else [*lines, f"{c}.Free()"]

    def used(self) -> set[int]:
        return {self.communicator} - {-1}

    def simpler(self) -> Iterator[Action]:
        if self.size > 1:
            yield self.changed(size=1)
            yield self.changed(size=self.size // 2)
        for at in range(len(self.distances)):
            yield self.changed(distances=self.distances[:at] + self.distances[at + 1 :])
        if self.form != "blocking":
            yield self.changed(form="blocking")
