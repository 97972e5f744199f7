"""Typemaps: the small programs that constructors make, bounds, signatures, refused arguments."""

from __future__ import annotations

import pytest

from ompy.core.basic import describe
from ompy.core.errors import ERR_ARG, ERR_COUNT, MPIError
from ompy.core.typemap import create_struct, predefined
from ompy.mpi.datatype import DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC

CODES = {describe(code)[0]: code for code in range(72)}
CHAR, INT, DOUBLE = (predefined(CODES[name]) for name in ("CHAR", "INT", "DOUBLE"))


def test_a_column_is_one_step() -> None:
    assert DOUBLE.create_vector(512, 1, 512).program.steps() == [(0, 8, 512, 4096)]


def test_regular_indices_are_found_to_be_a_column() -> None:
    assert DOUBLE.create_indexed_block(1, range(0, 50_000, 5)).program.steps() == [(0, 8, 10_000, 40)]


def test_touching_blocks_are_one() -> None:
    assert INT.create_indexed([2, 3, 1], [0, 2, 5]).program.steps() == [(0, 24, 1, 0)]
    assert create_struct([1, 1, 2], [0, 4, 8], [INT, INT, DOUBLE]).program.steps() == [(0, 24, 1, 0)]


def test_a_vector_without_gaps_is_contiguous() -> None:
    assert INT.create_vector(10, 3, 3).contiguous
    assert INT.create_contiguous(10).create_subarray([4, 6], [4, 6], [0, 0], False).contiguous
    assert not INT.create_vector(10, 3, 4).contiguous
    assert not INT.create_resized(0, 8).contiguous
    assert not create_struct([1], [4], [INT]).contiguous


def test_a_subarray_is_a_loop_nest() -> None:
    corner = INT.create_subarray([64, 64, 64], [8, 8, 8], [1, 2, 3], False)
    assert corner.program.steps() == [(4 * (64 * 64 + 2 * 64 + 3), 256, 8, 16384, [(0, 32, 8, 256)])]


def test_contiguous_columns_make_a_longer_column() -> None:
    every_other = DOUBLE.create_vector(4, 1, 2).create_resized(0, 64)
    assert every_other.create_contiguous(1000).program.steps() == [(0, 8, 4000, 16)]


def test_repeating_a_structure_costs_no_memory() -> None:
    """The steps of one structure, and one for each place: not a list of all blocks."""
    record = create_struct([1] * 6, range(0, 96, 16), [INT, DOUBLE, CHAR, DOUBLE, INT, CHAR])
    steps = record.create_hindexed([1000, 2000, 3000], [0, 10**6, 10**7]).program.steps()
    assert len(steps) == 3
    assert all(body == steps[0][4] for *_, body in steps)


@pytest.mark.parametrize(
    ("name", "size", "extent"),
    [
        ("SHORT_INT", 6, 8),
        ("2INT", 8, 8),
        ("LONG_INT", 12, 16),
        ("FLOAT_INT", 8, 8),
        ("DOUBLE_INT", 12, 16),
        ("LONG_DOUBLE_INT", 20, 32),
    ],
)
def test_pairs_have_the_padding_of_c(name: str, size: int, extent: int) -> None:
    pair = predefined(CODES[name])
    assert (pair.size, pair.extent) == (size, extent)


def test_a_structure_is_padded_as_c_does_it() -> None:
    assert create_struct([1, 1], [0, 8], [DOUBLE, CHAR]).extent == 16


def test_bounds_that_were_given_stick() -> None:
    marked = INT.create_resized(-4, 24)
    assert (marked.lower_bound, marked.extent) == (-4, 24)
    both = create_struct([1, 2], [0, 100], [marked, DOUBLE])
    assert (both.lower_bound, both.extent, both.true_lower_bound, both.true_extent) == (-4, 24, 0, 116)


def test_nothing_repeated_is_nothing() -> None:
    nothing = INT.create_contiguous(0).create_hvector(2, 2, 1)
    assert (nothing.size, nothing.extent, nothing.bounded) == (0, 0, False)


def test_signature_counts_basic_entries() -> None:
    record = create_struct([1, 2], [0, 8], [INT, DOUBLE])
    assert record.signature == ((CODES["INT"], 1), (CODES["DOUBLE"], 2))
    assert INT.create_vector(3, 2, 5).signature == ((CODES["INT"], 6),)
    assert INT.create_vector(3, 2, 5).basic == CODES["INT"]
    assert record.basic == -1


def test_elements_of_a_partial_message() -> None:
    record = create_struct([1, 2], [0, 8], [INT, DOUBLE])
    assert [record.elements_in(n) for n in (0, 4, 8, 12, 20, 24, 40)] == [0, 1, -1, 2, 3, 4, 6]
    assert [record.bytes_of(n) for n in (0, 1, 2, 3, 4, 6)] == [0, 4, 12, 20, 24, 40]
    assert [predefined(CODES["DOUBLE_INT"]).elements_in(n) for n in (8, 12, 20)] == [1, 2, 3]


@pytest.mark.parametrize("argument", [16, 1 << 61, (1 << 63) - 1])
@pytest.mark.parametrize("distribution", [DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC])
def test_blocks_longer_than_the_dimension_leave_all_to_the_first_process(distribution: int, argument: int) -> None:
    parts = [INT.create_darray(4, rank, [16], [distribution], [argument], [4], False) for rank in range(4)]
    assert [part.size for part in parts] == [16 * INT.size, 0, 0, 0]
    assert {part.extent for part in parts} == {16 * INT.size}


def test_counts_are_64_bits() -> None:
    huge = CHAR.create_contiguous(1 << 40).create_vector(1 << 10, 1, 2)
    assert huge.size == 1 << 50
    assert huge.extent == (1 << 51) - (1 << 40)


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        (lambda: INT.create_contiguous(-1), ERR_COUNT, "-1 is negative"),
        (lambda: INT.create_vector(2, -3, 1), ERR_COUNT, "blocklength: -3"),
        (lambda: INT.create_indexed([1, -1], [0, 4]), ERR_COUNT, "blocklengths: -1"),
        (lambda: INT.create_indexed([1, 1], [0]), ERR_ARG, "2 values where 1"),
        (lambda: INT.create_subarray([4], [3], [2], False), ERR_ARG, "3 elements from 2 do not lie in a dimension of 4"),
        (lambda: INT.create_subarray([], [], [], False), ERR_ARG, "at least one dimension"),
        (lambda: INT.create_darray(4, 4, [8], [0], [-1], [4], False), ERR_ARG, "rank 4"),
        (lambda: INT.create_darray(4, 0, [8], [0], [-1], [3], False), ERR_ARG, "grid of 4 processes"),
        (lambda: INT.create_darray(4, 0, [8], [0], [1], [4], False), ERR_ARG, "blocks of 1 do not distribute 8"),
        (lambda: INT.create_darray(4, 0, [1 << 62], [1], [(1 << 62) - 1], [4], False), ERR_ARG, "farther than an address"),
        (lambda: INT.create_contiguous(1 << 62), ERR_ARG, "farther than an address can tell"),
        (lambda: INT.create_hvector(1 << 62, 1, 0), ERR_ARG, "makes a datatype of more than"),
        (lambda: predefined(72), ERR_ARG, "72"),
    ],
)
def test_arguments_that_make_no_sense_are_named(make: object, code: int, words: str) -> None:
    with pytest.raises(MPIError, match=words) as caught:
        make()  # type: ignore[operator]
    assert caught.value.code == code
