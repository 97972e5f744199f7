"""Datatypes at random, with every constructor, and where their bytes lie: reckoned here by the rules of MPI-4.1, 5.1.

MPI.INT.Create_vector(2, 1, 3)      blocks (0, 4) (12, 4), extent 16
|####|....|....|####|
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

# Predefined types whose bytes may be anything.
BASES = {"BYTE": 1, "SHORT": 2, "INT": 4, "DOUBLE": 8}
MOST_BLOCKS = 16


class Layout(NamedTuple):
    """A datatype.

    Attributes:
        create: a Python expression that makes it, not committed.
        blocks: (offset, length) in bytes, in the type's order; offsets are not negative.
        lb, extent: in bytes.
        base: the predefined type that it consists of.
    """

    create: str
    blocks: list[tuple[int, int]]
    lb: int
    extent: int
    base: str

    @property
    def size(self) -> int:
        return sum(length for _, length in self.blocks)

    def memory(self, count: int) -> int:
        """Bytes that so many elements reach over."""
        return (count - 1) * self.extent + max(offset + length for offset, length in self.blocks) if count else 0

    @staticmethod
    def of(fields: Any) -> Layout | None:
        """From what JSON made of one."""
        if fields is None or isinstance(fields, Layout):
            return fields
        create, blocks, *rest = fields
        return Layout(create, [(offset, length) for offset, length in blocks], *rest)


def placed(old: Layout, create: str, places: list[int], lb: int | None = None, extent: int | None = None) -> Layout:
    """Elements of a type at places given in bytes."""
    blocks: list[tuple[int, int]] = []
    for place in places:
        for offset, length in old.blocks:
            if blocks and sum(blocks[-1]) == place + offset:
                blocks[-1] = blocks[-1][0], blocks[-1][1] + length
            else:
                blocks.append((place + offset, length))
    low = min(place + old.lb for place in places) if lb is None else lb
    high = max(place + old.lb + old.extent for place in places)
    return Layout(create, blocks, low, high - low if extent is None else extent, old.base)


def blocks_of(rng: random.Random, fixed: int = 0) -> tuple[list[int], list[int]]:
    """Lengths and displacements of some blocks that do not overlap, at times not in ascending order."""
    lengths = [fixed or rng.randint(1, 3) for _ in range(rng.randint(1, 3))]
    at, places = rng.choice((0, 0, 1)), []
    for length in lengths:
        places.append(at)
        at += length + rng.choice((0, 1, 2))
    order = list(range(len(lengths)))
    if rng.random() < 0.3:
        rng.shuffle(order)
    return [lengths[k] for k in order], [places[k] for k in order]


def step(rng: random.Random, old: Layout) -> Layout:
    """A type made of another by one constructor."""
    e = old.extent
    how = rng.choice(("contiguous", "vector", "hvector", "indexed", "hindexed", "indexed_block", "hindexed_block",
                      "struct", "subarray", "darray", "resized", "dup"))  # fmt: skip
    if how == "contiguous":
        n = rng.randint(1, 4)
        return placed(old, f"{old.create}.Create_contiguous({n})", [k * e for k in range(n)])
    if how in ("vector", "hvector"):
        n, length = rng.randint(1, 4), rng.randint(1, 3)
        stride = length + rng.randint(0, 3)
        unit = 1 if how == "vector" else e
        places = [(k * stride + j) * e for k in range(n) for j in range(length)]
        return placed(old, f"{old.create}.Create_{how}({n}, {length}, {stride * unit})", places)
    if how in ("indexed", "hindexed", "struct"):
        lengths, where = blocks_of(rng)
        places = [(at + j) * e for at, length in zip(where, lengths, strict=True) for j in range(length)]
        given = where if how == "indexed" else [at * e for at in where]
        if how != "struct":
            return placed(old, f"{old.create}.Create_{how}({lengths}, {given})", places)
        made = placed(old, "", places)
        # A structure's extent may have padding (5.1.6, 5.1.7), so it is given.
        types = "[" + ", ".join([old.create] * len(lengths)) + "]"
        create = f"MPI.Datatype.Create_struct({lengths}, {given}, {types}).Create_resized({made.lb}, {made.extent})"
        return made._replace(create=create)
    if how in ("indexed_block", "hindexed_block"):
        length = rng.randint(1, 3)
        _, where = blocks_of(rng, length)
        places = [(at + j) * e for at in where for j in range(length)]
        given = where if how == "indexed_block" else [at * e for at in where]
        return placed(old, f"{old.create}.Create_{how}({length}, {given})", places)
    if how == "subarray":
        sizes = [rng.randint(1, 4), rng.randint(1, 4)]
        subsizes = [rng.randint(1, n) for n in sizes]
        starts = [rng.randint(0, n - m) for n, m in zip(sizes, subsizes, strict=True)]
        order = rng.choice(("C", "FORTRAN"))
        rows, columns = (0, 1) if order == "C" else (1, 0)
        places = [
            ((starts[rows] + i) * sizes[columns] + starts[columns] + j) * e
            for i in range(subsizes[rows])
            for j in range(subsizes[columns])
        ]
        create = f"{old.create}.Create_subarray({sizes}, {subsizes}, {starts}, MPI.ORDER_{order})"
        return placed(old, create, places, 0, sizes[0] * sizes[1] * e)
    if how == "darray":
        parts, length = rng.randint(1, 3), rng.randint(1, 2)
        n = parts * length * rng.randint(1, 2)
        part = rng.randrange(parts)
        places = [k * e for k in range(n) if k // length % parts == part]
        create = f"{old.create}.Create_darray({parts}, {part}, [{n}], [MPI.DISTRIBUTE_CYCLIC], [{length}], [{parts}])"
        return placed(old, create, places, 0, n * e)
    if how == "resized":
        extent = old.lb + e + BASES[old.base] * rng.randint(0, 3)
        return old._replace(create=f"{old.create}.Create_resized(0, {extent})", lb=0, extent=extent)
    return old._replace(create=f"{old.create}.Dup()")


def basic(name: str) -> Layout:
    return Layout(f"MPI.{name}", [(0, BASES[name])], 0, BASES[name], name)


def at_random(rng: random.Random, base: str) -> Layout:
    """One to three constructors over a predefined type."""
    found = basic(base)
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        # Where lb is not zero a type's elements don't begin where the next constructor puts them.
        made = step(rng, found if found.lb == 0 else found._replace(
            create=f"{found.create}.Create_resized(0, {found.lb + found.extent})", lb=0, extent=found.lb + found.extent
        ))  # fmt: skip
        if len(made.blocks) <= MOST_BLOCKS:
            found = made
    return found
