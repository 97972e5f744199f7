"""CRC-32C against the examples of RFC 3720, appendix B.4, and one way of computing it against the other."""

from __future__ import annotations

import random

import pytest

from ompy.core.checksum import checksum


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        (b"123456789", 0xE3069283),
    ],
)
def test_known_values(data: bytes, expected: int, portable: bool) -> None:
    assert checksum(data, portable=portable) == expected


def test_pieces_of_any_length_and_alignment_add_up(rng: random.Random) -> None:
    data = rng.randbytes(1000)
    for _ in range(200):
        begin, middle, end = sorted(rng.randrange(1001) for _ in range(3))
        piece = memoryview(data)[begin:end]
        whole = checksum(piece)
        assert checksum(memoryview(data)[middle:end], checksum(memoryview(data)[begin:middle])) == whole
        assert checksum(piece, portable=True) == whole


def test_a_changed_bit_changes_it(rng: random.Random) -> None:
    data = bytearray(rng.randbytes(100))
    right = checksum(data)
    for bit in range(800):
        data[bit >> 3] ^= 1 << (bit & 7)
        assert checksum(data) != right
        data[bit >> 3] ^= 1 << (bit & 7)
