"""Bytes as a broken or malicious sender would have them."""

from __future__ import annotations

import random
from collections.abc import Sequence


def mutated(rng: random.Random, data: bytes, others: Sequence[bytes] = (b"",)) -> bytes:
    """`data` with a few bytes changed, cut out, repeated, or replaced by pieces of `others`; now and then as it was."""
    changed = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 4, 8))):
        place = rng.randrange(len(changed) + 1)
        end = min(len(changed), place + rng.choice((0, 1, 1, 2, 4, 16)))
        other = rng.choice(others)
        changed[place:end] = rng.choice(
            (
                b"",
                bytes([rng.randrange(256)]),
                rng.randbytes(rng.randrange(8)),
                bytes(changed[place:end]) * 3,
                other[rng.randrange(len(other) + 1) :],
                rng.choice((b"\0", b"\xff" * 8, b"\n", b" ", b"=", b"-1", b"9" * 30, b"\x80")),
            )
        )
    return bytes(changed)
