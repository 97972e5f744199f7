"""What the messages under test are made of."""

from __future__ import annotations

import random
from functools import cache
from hashlib import blake2b

# Of the bytes that messages are cut from.  A prime: what goes astray by a fragment, or by several, finds other bytes there.
STOCK = 1_048_583
NAME = 8


@cache
def stock(seed: int) -> bytes:
    """Random bytes, twice."""
    return random.Random(seed).randbytes(STOCK) * 2


def content(seed: int, source: int, target: int, number: int, size: int) -> bytes:
    """The bytes of one message: the same for whoever asks, and different from every other's."""
    name = blake2b(f"{seed} {source} {target} {number}".encode(), digest_size=NAME).digest()
    start = int.from_bytes(name, "little") % STOCK
    bytes_of_stock = stock(seed)
    if size > STOCK:
        bytes_of_stock *= size // STOCK + 1
    return (name + bytes_of_stock[start : start + max(size - NAME, 0)])[:size]
