"""The cache of registered memory: what covers is reused, what is in use stays, what is over budget goes."""

from __future__ import annotations

import random

import pytest

from ompy.core import registration
from ompy.core.errors import ERR_NO_MEM, MPIError
from ompy.core.registration import RegistrationCache


class Card:
    """A network card that remembers what is registered and refuses what is not."""

    def __init__(self, budget: int = 0, room: int = 1 << 40):
        self.pinned: dict[bytes, tuple[int, int]] = {}
        self.count = 0
        self.room = room
        self.cache = RegistrationCache(self.pin, self.unpin, budget)

    def pin(self, address: int, size: int) -> bytes:
        if size + sum(size for _, size in self.pinned.values()) > self.room:
            raise MPIError(ERR_NO_MEM, "the card is full")
        self.count += 1
        handle = b"%d" % self.count
        self.pinned[handle] = (address, size)
        return handle

    def unpin(self, handle: bytes) -> None:
        del self.pinned[handle]

    def covers(self, handle: bytes, address: int, size: int) -> bool:
        begin, length = self.pinned[handle]
        return begin <= address and address + size <= begin + length


def test_without_a_budget_a_registration_ends_with_its_last_user() -> None:
    card = Card()
    first, second = card.cache.hold(4096, 100), card.cache.hold(4100, 50)
    assert first == second
    assert card.count == 1
    card.cache.release(first)
    assert card.pinned
    card.cache.release(second)
    assert not card.pinned


def test_within_the_budget_the_next_transfer_finds_it() -> None:
    card = Card(budget=1000)
    card.cache.release(card.cache.hold(4096, 1000))
    card.cache.release(card.cache.hold(4500, 500))
    assert (card.cache.hits, card.cache.misses, card.cache.unused) == (1, 1, 1000)


def test_over_the_budget_the_longest_unused_goes_first() -> None:
    card = Card(budget=250)
    for address in 0, 1000, 2000:
        card.cache.release(card.cache.hold(address, 100))
    assert sorted(card.pinned.values()) == [(1000, 100), (2000, 100)]
    card.cache.release(card.cache.hold(1000, 100))
    card.cache.release(card.cache.hold(3000, 100))
    assert sorted(card.pinned.values()) == [(1000, 100), (3000, 100)]


def test_however_short_they_are_no_more_than_so_many_are_kept() -> None:
    card = Card(budget=1 << 30)
    for address in range(0, 8 * 5000, 8):
        card.cache.release(card.cache.hold(address, 8))
    assert len(card.pinned) == len(card.cache) == 1024
    assert (8 * 4999, 8) in card.pinned.values()


def test_a_larger_registration_takes_the_place_of_those_within_it() -> None:
    card = Card(budget=1 << 20)
    small = card.cache.hold(100, 10)
    card.cache.release(card.cache.hold(200, 10))
    large = card.cache.hold(0, 1000)
    assert sorted(card.pinned.values()) == [(0, 1000), (100, 10)]
    assert card.cache.hold(100, 10) == large
    card.cache.release(small)
    assert list(card.pinned.values()) == [(0, 1000)]


def test_a_full_card_is_emptied_of_what_nobody_uses() -> None:
    card = Card(budget=1 << 20, room=100)
    card.cache.release(card.cache.hold(0, 100))
    card.cache.hold(1000, 60)
    assert list(card.pinned.values()) == [(1000, 60)]
    with pytest.raises(MPIError, match="the card is full"):
        card.cache.hold(2000, 60)
    assert card.cache.hold(1010, 10)


def test_memory_that_is_given_back_is_not_found_again() -> None:
    card = Card(budget=1 << 20)
    card.cache.release(card.cache.hold(0, 100))
    used = card.cache.hold(100, 100)
    card.cache.release(card.cache.hold(200, 100))
    registration.forget(50, 60)
    assert sorted(card.pinned.values()) == [(100, 100), (200, 100)]
    again = card.cache.hold(100, 100)
    assert again != used
    card.cache.release(used)
    assert used not in card.pinned


def test_random_use_agrees_with_what_is_registered() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    card = Card(budget=500)
    held: list[tuple[bytes, int, int]] = []
    for _ in range(20_000):
        action = draw.random()
        if action < 0.5 or not held:
            address, size = draw.randrange(2000), draw.randrange(1, 300)
            held.append((card.cache.hold(address, size), address, size))
        elif action < 0.97:
            card.cache.release(held.pop(draw.randrange(len(held)))[0])
        else:
            card.cache.forget(draw.randrange(2000), draw.randrange(1, 500))
        assert all(card.covers(*use) for use in held)
        unused = sum(size for handle, (_, size) in card.pinned.items() if handle not in {use[0] for use in held})
        assert unused == card.cache.unused <= 500
        if len(held) > 20:
            for handle, *_ in held:
                card.cache.release(handle)
            held.clear()
    card.cache.clear()
    for handle, *_ in held:
        card.cache.release(handle)
    assert not card.pinned
    assert len(card.cache) == 0
