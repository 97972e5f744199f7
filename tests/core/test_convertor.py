"""Packing against NumPy index arrays, from any position, for random nested types."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import Layout, layouts

from ompy.core.convertor import Convertor
from ompy.core.typemap import predefined

BYTE, DOUBLE = predefined(1), predefined(18)


def memory_for(layout: Layout, count: int, seed: int) -> tuple[np.ndarray, int, np.ndarray]:
    """Random memory that holds `count` elements, where in it the first one begins, and its bytes' indices in order."""
    offsets = layout.repeated(count)
    origin = -int(offsets.min()) if offsets.size else 0
    span = int(offsets.max()) + origin + 1 if offsets.size else 1
    memory = np.random.default_rng(seed).integers(0, 256, span, dtype=np.uint8)
    return memory, origin, offsets + origin


def aimed(memory: np.ndarray, origin: int, count: int, typemap: Any) -> Convertor:
    convertor = Convertor()
    convertor.aim(memory.ctypes.data + origin, count, typemap)
    return convertor


def pieces(total: int, randomly: random.Random) -> list[tuple[int, int]]:
    """Cuts 0 .. total into (begin, end) at random points."""
    cuts = sorted({0, total, *(randomly.randint(0, total) for _ in range(randomly.randint(0, 6)))})
    return list(itertools.pairwise(cuts))


@settings(max_examples=2200, deadline=None)
@given(layouts(), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_pieces_in_any_order_are_the_whole(pair: tuple[Any, Layout], count: int, seed: int) -> None:
    typemap, layout = pair
    randomly = random.Random(seed)
    memory, origin, indices = memory_for(layout, count, seed)
    expected = memory[indices].tobytes()
    convertor = aimed(memory, origin, count, typemap)
    assert convertor.total == len(expected)
    parts = pieces(len(expected), randomly)
    assert b"".join(convertor.pack_bytes(end - begin) for begin, end in parts) == expected
    assert convertor.pack_bytes(100) == b""
    randomly.shuffle(parts)
    for begin, end in parts:
        convertor.seek_to(begin)
        address, length = convertor.next_stretch()
        place = address - memory.ctypes.data
        assert memory[place : place + length].tobytes() == expected[begin : begin + length]
        assert length > 0 or begin == len(expected)
        assert convertor.pack_bytes(end - begin) == expected[begin:end]
    if len(set(indices.tolist())) < indices.size:
        return  # entries overlap: MPI forbids such a type for receives
    target = np.zeros_like(memory)
    convertor = aimed(target, origin, count, typemap)
    for begin, end in parts:
        convertor.seek_to(begin)
        assert convertor.unpack_bytes(expected[begin:end]) == end - begin
    kept = np.zeros_like(memory)
    kept[indices] = memory[indices]
    assert (target == kept).all()


@settings(max_examples=300, deadline=None)
@given(layouts())
def test_bounds_are_those_of_the_standard(pair: tuple[Any, Layout]) -> None:
    typemap, layout = pair
    assert (typemap.size, typemap.lower_bound, typemap.extent) == (layout.offsets.size, layout.lower, layout.extent)
    if layout.offsets.size:
        first, last = int(layout.offsets.min()), int(layout.offsets.max())
        assert (typemap.true_lower_bound, typemap.true_extent) == (first, last + 1 - first)
    dense = (layout.repeated(3) == np.arange(3 * layout.offsets.size)).all()
    assert typemap.contiguous <= bool(dense)


def test_seek_into_a_huge_type_is_immediate() -> None:
    """A million million elements: anything that walks there does not return."""
    column = DOUBLE.create_vector(1_000_000, 1, 1_000_000)
    convertor = Convertor()
    convertor.aim(0, 1_000_000, column.create_resized(0, 8))
    convertor.seek_to(convertor.total - 8)
    assert convertor.position == convertor.total - 8


def test_unpacking_stops_at_the_last_element() -> None:
    target = np.zeros(8)
    convertor = aimed(target.view(np.uint8), 0, 1, DOUBLE.create_vector(4, 1, 2))
    assert convertor.unpack_bytes(np.arange(6.0).tobytes()) == 32
    assert target.tolist() == [0, 0, 1, 0, 2, 0, 3, 0]


@pytest.mark.parametrize("length", [1, 2, 4, 8, 16, 24, 32, 64, 600])
@pytest.mark.parametrize("stride", [1024, 4096, -4096, 4096 + 8])
def test_blocks_that_crowd_in_the_cache_are_stored_like_others(length: int, stride: int) -> None:
    """Strides that are a power of two are stored in batches; the counts lie around one, two and many of them."""
    for count in (1, 11, 12, 13, 24, 25, 100):
        first = (count - 1) * max(0, -stride)
        places = first + np.arange(count)[:, None] * stride + np.arange(length)
        data = np.random.default_rng(count).integers(1, 256, places.size, dtype=np.uint8)
        target = np.zeros((count - 1) * abs(stride) + length, dtype=np.uint8)
        convertor = aimed(target, first, 1, BYTE.create_hvector(count, length, stride))
        half = data.size // 2 + 1
        assert convertor.unpack_bytes(data[:half]) + convertor.unpack_bytes(data[half:]) == data.size
        expected = np.zeros_like(target)
        expected[places.ravel()] = data
        assert (target == expected).all()
        assert convertor.position == data.size
