"""What messages under test are made of."""

from __future__ import annotations

import pytest

from ompy.testing.conformance.content import STOCK, content

FRAGMENTS = [1, 8, 64, 4096, 65536, 1 << 20, STOCK - 1]


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 100, STOCK, STOCK + 1, 2 * STOCK - 1, 2 * STOCK, 5_000_000])
def test_a_message_is_as_long_as_asked_and_the_same_for_whoever_asks(seed: int, size: int) -> None:
    for number in range(20):
        message = content(seed, 0, 1, number, size)
        assert len(message) == size
        assert content(seed, 0, 1, number, size) == message


@pytest.mark.parametrize("size", [8, 9, 100, 4096])
def test_messages_differ(seed: int, size: int) -> None:
    names = [(source, target, number) for source in range(5) for target in range(5) for number in range(100)]
    assert len({content(seed, *name, size) for name in names}) == len(names)
    assert content(seed, 0, 1, 0, size) != content(seed + 1, 0, 1, 0, size)


@pytest.mark.parametrize("astray", FRAGMENTS)
def test_bytes_that_went_astray_are_others(seed: int, astray: int) -> None:
    message = content(seed, 0, 1, 0, 3 << 20)
    assert message[astray : astray + 64] != message[:64]
    assert message[-astray - 64 : -astray] != message[-64:]
