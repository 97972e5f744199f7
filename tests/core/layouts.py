"""A second, naive reading of MPI-4.1, 5.1 to hold typemaps against: every byte offset of one element, in order.

`Layout` knows no program and merges nothing; NumPy index arrays do the work.  `layouts()` is a hypothesis strategy that
draws pairs (typemap, layout) of random nesting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ompy.core.typemap import create_struct, predefined

#: code in `ompy.core.basic` -> (bytes, alignment)
BASICS = {5: (1, 1), 8: (2, 2), 9: (4, 4), 18: (8, 8), 32: (16, 8)}


@dataclass(frozen=True)
class Layout:
    """Byte offsets of the data of one element, its bounds, and whether the bounds were given."""

    offsets: np.ndarray
    lower: int
    extent: int
    alignment: int
    bounded: bool = False

    def repeated(self, count: int) -> np.ndarray:
        steps = np.arange(count, dtype=np.int64) * self.extent
        return (steps[:, None] + self.offsets[None, :]).reshape(-1)


def basic(code: int) -> Layout:
    size, alignment = BASICS[code]
    return Layout(np.arange(size, dtype=np.int64), 0, size, alignment)


def combined(blocks: Sequence[tuple[int, int, Layout]]) -> Layout:
    """Blocks (displacement in bytes, elements, layout), one after the other: the general struct, which all others are."""
    blocks = [block for block in blocks if block[1] and (block[2].offsets.size or block[2].extent or block[2].bounded)]
    if not blocks:
        return Layout(np.empty(0, np.int64), 0, 0, 1)
    offsets = np.concatenate([displacement + layout.repeated(count) for displacement, count, layout in blocks])
    alignment = max([layout.alignment for _, _, layout in blocks if layout.offsets.size], default=1)
    bounded = any(layout.bounded for _, _, layout in blocks)
    bounds = [
        displacement + layout.lower + edge + step
        for displacement, count, layout in blocks
        if layout.bounded == bounded
        for edge in (0, layout.extent)
        for step in (0, (count - 1) * layout.extent)
    ]
    lower, extent = min(bounds), max(bounds) - min(bounds)
    if not bounded:
        extent = -(-extent // alignment) * alignment
    return Layout(offsets, lower, extent, alignment, bounded)


def subarray(layout: Layout, sizes: list[int], subsizes: list[int], starts: list[int], fortran: bool) -> Layout:
    grid = np.arange(int(np.prod(sizes))).reshape(sizes, order="F" if fortran else "C")
    box = grid[tuple(slice(a, a + n) for a, n in zip(starts, subsizes, strict=True))]
    return elements_at(layout, box.flatten(order="F" if fortran else "C"), grid.size)


def elements_at(layout: Layout, indices: np.ndarray, total: int) -> Layout:
    offsets = (indices[:, None] * layout.extent + layout.offsets[None, :]).reshape(-1)
    return Layout(offsets, 0, total * layout.extent, layout.alignment, True)


def owners(size: int, distribution: int, argument: int, processes: int) -> np.ndarray:
    """Which process coordinate owns each index of a distributed dimension."""
    if distribution == 2:
        return np.zeros(size, np.int64)
    block = argument if argument > 0 else (-(-size // processes) if distribution == 0 else 1)
    return np.arange(size) // block % processes


def darray(layout: Layout, rank: int, gsizes: list[int], distributions: list[int], arguments: list[int], psizes: list[int],
           fortran: bool) -> Layout:  # fmt: skip
    coordinates = np.unravel_index(rank, psizes)
    masks = [owners(*each) == c for *each, c in zip(gsizes, distributions, arguments, psizes, coordinates, strict=True)]
    order: Any = "F" if fortran else "C"
    mask = reduce(np.multiply.outer, masks)
    grid = np.arange(mask.size).reshape(gsizes, order=order)
    return elements_at(layout, grid.flatten(order=order)[mask.flatten(order=order)], grid.size)


@st.composite
def extended(draw: st.DrawFn, pair: tuple[Any, Layout]) -> tuple[Any, Layout]:
    """One constructor applied to a pair."""
    typemap, layout = pair
    kind = draw(st.sampled_from(
        ["contiguous", "vector", "hvector", "indexed", "hindexed", "block", "hblock", "struct", "subarray", "darray", "resized"]
    ))  # fmt: skip
    few, step = st.integers(0, 3), st.integers(-4, 6)
    if kind == "contiguous":
        count = draw(few)
        return typemap.create_contiguous(count), combined([(0, count, layout)])
    if kind in ("vector", "hvector"):
        count, length, stride = draw(few), draw(few), draw(step)
        unit = layout.extent if kind == "vector" else 1
        made = getattr(typemap, f"create_{kind}")(count, length, stride)
        return made, combined([(i * stride * unit, length, layout) for i in range(count)])
    if kind in ("indexed", "hindexed"):
        parts = draw(st.lists(st.tuples(few, step), max_size=4))
        unit = layout.extent if kind == "indexed" else 1
        made = getattr(typemap, f"create_{kind}")([n for n, _ in parts], [d for _, d in parts])
        return made, combined([(d * unit, n, layout) for n, d in parts])
    if kind in ("block", "hblock"):
        length, displacements = draw(few), draw(st.lists(step, max_size=5))
        unit = layout.extent if kind == "block" else 1
        make = typemap.create_indexed_block if kind == "block" else typemap.create_hindexed_block
        return make(length, displacements), combined([(d * unit, length, layout) for d in displacements])
    if kind == "struct":
        code, displacement, other = draw(st.sampled_from(sorted(BASICS))), draw(st.integers(-8, 40)), draw(few)
        lengths, displacements = [draw(few), other], [draw(step), displacement]
        made = create_struct(lengths, displacements, [typemap, predefined(code)])
        return made, combined(list(zip(displacements, lengths, [layout, basic(code)], strict=True)))
    if kind == "subarray":
        sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
        subsizes = [draw(st.integers(1, n)) for n in sizes]
        starts = [draw(st.integers(0, n - m)) for n, m in zip(sizes, subsizes, strict=True)]
        fortran = draw(st.booleans())
        return typemap.create_subarray(sizes, subsizes, starts, fortran), subarray(layout, sizes, subsizes, starts, fortran)
    if kind == "darray":
        psizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
        gsizes = [draw(st.integers(1, 5)) for _ in psizes]
        distributions = [draw(st.sampled_from([0, 1] if p > 1 else [0, 1, 2])) for p in psizes]
        arguments = [draw(st.integers(1, 3)) if d == 1 and draw(st.booleans()) else -1 for d in distributions]
        size = int(np.prod(psizes))
        rank, fortran = draw(st.integers(0, size - 1)), draw(st.booleans())
        made = typemap.create_darray(size, rank, gsizes, distributions, arguments, psizes, fortran)
        return made, darray(layout, rank, gsizes, distributions, arguments, psizes, fortran)
    lower, extent = draw(st.integers(-8, 8)), draw(st.integers(0, 40))
    return typemap.create_resized(lower, extent), Layout(layout.offsets, lower, extent, layout.alignment, True)


@st.composite
def layouts(draw: st.DrawFn, depth: int = 4, limit: int = 4096) -> tuple[Any, Layout]:
    """A typemap and what it should be, nested up to `depth` constructors, of at most `limit` bytes of data."""
    code = draw(st.sampled_from(sorted(BASICS)))
    pair: tuple[Any, Layout] = predefined(code), basic(code)
    for _ in range(draw(st.integers(0, depth))):
        larger = draw(extended(pair))
        if larger[1].offsets.size > limit:
            break
        pair = larger
    return pair
