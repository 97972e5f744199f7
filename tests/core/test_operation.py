"""Every predefined reduction on every type it takes, against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ompy.core.basic import describe
from ompy.core.errors import MPIError
from ompy.core.operation import predefined as operation
from ompy.core.typemap import create_struct, predefined

CODES = {describe(code)[0]: code for code in range(72)}
SEED = 20240229

INTEGERS = {
    "b": "SIGNED_CHAR INT8_T INTEGER1",
    "h": "SHORT INT16_T INTEGER2",
    "i": "INT INT32_T INTEGER INTEGER4",
    "l": "LONG LONG_LONG INT64_T INTEGER8 AINT OFFSET COUNT",
    "B": "UNSIGNED_CHAR UINT8_T",
    "H": "UNSIGNED_SHORT UINT16_T",
    "I": "UNSIGNED UINT32_T",
    "L": "UNSIGNED_LONG UNSIGNED_LONG_LONG UINT64_T",
}
FLOATS = {"e": "FLOAT16_T REAL2", "f": "FLOAT REAL REAL4", "d": "DOUBLE DOUBLE_PRECISION REAL8", "g": "LONG_DOUBLE"}
COMPLEXES = {
    "F": "C_FLOAT_COMPLEX CXX_FLOAT_COMPLEX COMPLEX COMPLEX8",
    "D": "C_DOUBLE_COMPLEX CXX_DOUBLE_COMPLEX DOUBLE_COMPLEX COMPLEX16",
    "G": "C_LONG_DOUBLE_COMPLEX CXX_LONG_DOUBLE_COMPLEX",
}
LOGICALS = {"B": "C_BOOL CXX_BOOL", "b": "LOGICAL1", "h": "LOGICAL2", "i": "LOGICAL LOGICAL4", "l": "LOGICAL8"}
C_INTEGERS = {
    "b": "SIGNED_CHAR INT8_T", "h": "SHORT INT16_T", "i": "INT INT32_T", "l": "LONG LONG_LONG INT64_T",
    "B": "UNSIGNED_CHAR UINT8_T", "H": "UNSIGNED_SHORT UINT16_T", "I": "UNSIGNED UINT32_T",
    "L": "UNSIGNED_LONG UNSIGNED_LONG_LONG UINT64_T",
}  # fmt: skip
BYTE = {"B": "BYTE"}


def logical(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda a, b: function(a != 0, b != 0)


#: operation -> (NumPy's, groups of MPI-4.1, 6.9.2)
OPERATIONS = {
    "MAX": (np.maximum, (INTEGERS, FLOATS)),
    "MIN": (np.minimum, (INTEGERS, FLOATS)),
    "SUM": (np.add, (INTEGERS, FLOATS, COMPLEXES)),
    "PROD": (np.multiply, (INTEGERS, FLOATS, COMPLEXES)),
    "LAND": (logical(np.logical_and), (C_INTEGERS, LOGICALS)),
    "LOR": (logical(np.logical_or), (C_INTEGERS, LOGICALS)),
    "LXOR": (logical(np.logical_xor), (C_INTEGERS, LOGICALS)),
    "BAND": (np.bitwise_and, (INTEGERS, BYTE)),
    "BOR": (np.bitwise_or, (INTEGERS, BYTE)),
    "BXOR": (np.bitwise_xor, (INTEGERS, BYTE)),
}
#: what NumPy has no type for: INTEGER16, LOGICAL16, and the 128-bit reals
WIDE = {"INTEGER16", "LOGICAL16", "REAL16", "COMPLEX32", "COMPLEX4"}
PAIRS = {
    "SHORT_INT": "i2,i4", "2INT": "i4,i4", "LONG_INT": "i8,i4", "FLOAT_INT": "f4,i4", "DOUBLE_INT": "f8,i4",
    "LONG_DOUBLE_INT": "g,i4", "2REAL": "f4,f4", "2DOUBLE_PRECISION": "f8,f8", "2INTEGER": "i4,i4",
}  # fmt: skip

CASES = [
    (name, character, type_name)
    for name, (_, groups) in OPERATIONS.items()
    for group in groups
    for character, names in group.items()
    for type_name in names.split()
]


def values(character: str, count: int, seed: int) -> np.ndarray:
    randomly = np.random.default_rng(seed)
    if character in "bhilBHIL":
        made = randomly.integers(0, 256, (count, np.dtype(character).itemsize), dtype=np.uint8).view(character)[:, 0]
        made[:: max(1, count // 7)] = 0
        return made
    made = (randomly.integers(-9, 9, count) / 4).astype(character)
    return made + 1j * (randomly.integers(-9, 9, count) / 4).astype(made.real.dtype) if character in "FDG" else made


def reduced(name: str, left: np.ndarray, right: np.ndarray, typemap: object, count: int) -> np.ndarray:
    result = right.copy()
    operation(name).reduce_at(left.ctypes.data, result.ctypes.data, count, typemap)
    return result


@pytest.mark.parametrize(("name", "character", "type_name"), CASES)
def test_is_what_numpy_makes_of_it(name: str, character: str, type_name: str) -> None:
    left, right = values(character, 101, SEED), values(character, 101, SEED + 1)
    with np.errstate(over="ignore"):
        expected = OPERATIONS[name][0](left, right).astype(character)
    typemap = predefined(CODES[type_name])
    assert operation(name).defined_on(typemap)
    assert np.array_equal(reduced(name, left, right, typemap, 101), expected)


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_other_type_is_taken(name: str) -> None:
    taken = {type_name for group in OPERATIONS[name][1] for names in group.values() for type_name in names.split()}
    memory = np.zeros(64, np.uint8)
    for type_name, code in CODES.items():
        if type_name in WIDE:
            continue
        assert operation(name).defined_on(predefined(code)) == (type_name in taken), type_name
        if type_name not in taken:
            with pytest.raises(MPIError, match=f"{name} is not defined on {type_name}"):
                reduced(name, memory, memory, predefined(code), 1)
    with pytest.raises(MPIError, match="mixture"):
        reduced(name, memory, memory, create_struct([1, 1], [0, 8], [predefined(9), predefined(18)]), 1)


@pytest.mark.parametrize("type_name", PAIRS)
@pytest.mark.parametrize("name", ["MINLOC", "MAXLOC"])
def test_location_of_the_extreme_and_of_equal_ones_the_smaller(name: str, type_name: str) -> None:
    dtype = np.dtype(PAIRS[type_name], align=True)
    assert dtype.itemsize == predefined(CODES[type_name]).extent
    randomly = np.random.default_rng(SEED)
    left, right = np.zeros(200, dtype), np.zeros(200, dtype)
    for side in (left, right):
        side["f0"], side["f1"] = randomly.integers(-2, 2, 200), randomly.integers(0, 3, 200)
    sign = 1 if name == "MINLOC" else -1
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    expected = [min(a, b, key=lambda pair: (sign * pair[0], pair[1])) for a, b in pairs]
    assert reduced(name, left, right, predefined(CODES[type_name]), 200).tolist() == expected


def test_sixteen_byte_integers() -> None:
    numbers = [1 << 100, -(1 << 90) + 7, -1]
    data = np.frombuffer(b"".join(n.to_bytes(16, "little", signed=True) for n in numbers), np.uint8)
    total = reduced("SUM", data, data, predefined(CODES["INTEGER16"]), 3).tobytes()
    found = [int.from_bytes(total[i : i + 16], "little", signed=True) for i in range(0, 48, 16)]
    assert found == [2 * n for n in numbers]


def test_half_complex_product() -> None:
    left, right = np.array([0.5, 2, 3, 4], np.float16), np.array([5, 6, 7, 8], np.float16)
    assert reduced("PROD", left, right, predefined(CODES["COMPLEX4"]), 2).tolist() == [-9.5, 13, -11, 52]


def test_binary128_reals() -> None:
    """1.5 and 2.25 as IEEE binary128, which NumPy does not know: sign and exponent in the two last bytes."""
    half = {1.5: (0x3FFF, 0x8000), 2.25: (0x4000, 0x2000), 3.75: (0x4000, 0xE000), 3.375: (0x4000, 0xB000)}

    def encoded(number: float) -> np.ndarray:
        exponent, fraction = half[number]
        return np.frombuffer(bytes(12) + fraction.to_bytes(2, "little") + exponent.to_bytes(2, "little"), np.uint8)

    real = predefined(CODES["REAL16"])
    for name, expected in (("SUM", 3.75), ("PROD", 3.375), ("MAX", 2.25), ("MIN", 1.5)):
        found = reduced(name, encoded(1.5), encoded(2.25), real, 1)
        assert found.tobytes() == encoded(expected).tobytes(), name


def test_gaps_of_derived_types_are_left_alone() -> None:
    column = predefined(CODES["DOUBLE"]).create_vector(3, 2, 5)
    left, right = np.arange(40.0), np.full(40, 100.0)
    expected = right.copy()
    for element in range(2):
        for row in range(3):
            begin = element * 12 + row * 5
            expected[begin : begin + 2] += left[begin : begin + 2]
    assert reduced("SUM", left, right, column, 2).tolist() == expected.tolist()


def test_data_anywhere_in_memory() -> None:
    """Vector instructions fault on addresses that their element type may not have."""
    memory = np.zeros(4096 + 1, np.uint8)
    left, right = memory[1:2049].view(np.int64), memory[2049:].view(np.int64)
    left[:], right[:] = np.arange(256), 1000
    operation("SUM").reduce_at(left.ctypes.data, right.ctypes.data, 256, predefined(CODES["LONG"]))
    assert right.tolist() == list(range(1000, 1256))


def test_more_than_one_batch_of_gaps() -> None:
    every_other = predefined(CODES["INT"]).create_resized(0, 8)
    left, right = np.arange(60_000, dtype="i"), np.ones(60_000, "i")
    result = reduced("MAX", left, right, every_other, 30_000)
    assert (result[::2] == np.maximum(left[::2], 1)).all()
    assert (result[1::2] == 1).all()


def test_replace_and_no_op_take_any_type() -> None:
    mixture = create_struct([1, 1], [0, 8], [predefined(CODES["CHAR"]), predefined(CODES["DOUBLE"])])
    left, right = np.arange(32, dtype=np.uint8), np.full(32, 99, np.uint8)
    assert operation("REPLACE").defined_on(mixture)
    replaced = reduced("REPLACE", left, right, mixture, 2).tolist()
    assert replaced == [0, *[99] * 7, *range(8, 16), 16, *[99] * 7, *range(24, 32)]
    assert reduced("NO_OP", left, right, mixture, 2).tolist() == [99] * 32


LONG_ONES = {"SHORT": "h", "INT": "i", "LONG": "l", "FLOAT": "f", "DOUBLE": "d", "LONG_DOUBLE": "g"}


@pytest.mark.parametrize(
    ("name", "type_name"),
    [(name, kind) for name in ("SUM", "PROD", "MAX", "MIN") for kind in LONG_ONES]
    + [("SUM", "C_DOUBLE_COMPLEX"), ("PROD", "C_DOUBLE_COMPLEX")],
)
@pytest.mark.parametrize("nbytes", [32768, 32784, 65536, 65552, 1 << 20, (1 << 20) + 16368])
def test_each_element_of_a_long_reduction_is_reduced_once(name: str, type_name: str, nbytes: int) -> None:
    """From either end in turns; what lies before and behind stays as it is."""
    character = LONG_ONES.get(type_name, "D")
    expected = {"SUM": np.add, "PROD": np.multiply, "MAX": np.maximum, "MIN": np.minimum}[name]
    count, before = nbytes // np.dtype(character).itemsize, 3
    left = (np.arange(count + 100) % 100).astype(character)
    for _ in range(2):
        result = np.full(count + 100, 5).astype(character)
        middle = result[before:]
        operation(name).reduce_at(left.ctypes.data, middle.ctypes.data, count, predefined(CODES[type_name]))
        assert np.array_equal(middle[:count], expected(left[:count], np.full(count, 5).astype(character)))
        assert (result[:before] == 5).all()
        assert (middle[count:] == 5).all()
