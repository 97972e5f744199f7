"""Which faults befall a message: a function of the seed, the directed pair and the message's number, and of nothing else.

So a run is repeated by its seed whatever the timing, and a message that met back-pressure meets the same fate when it is
tried again.
"""

from __future__ import annotations

from zlib import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MASK = (1 << 64) - 1
WEYL = 0x9E3779B97F4A7C15


def mixed(word: int) -> int:
    """The finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014)."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def seed_of_job(job: str) -> int:
    """A seed that every rank of a job finds by itself, and that differs from job to job."""
    return crc32(job.encode())


class Dice:
    """The draws of one rank.

    Parameters:
        seed: the same on every rank.
        rank: of this process; the source of its messages.
        rates: fault -> share of messages, 0 to 1.
    """

    def __init__(self, seed: int, rank: int, rates: Mapping[str, float]) -> None:
        self.seed = seed
        self.rank = rank
        # Each fault draws for itself: raising one rate leaves the messages that the others befall as they were.
        self.thresholds = {name: (crc32(name.encode()), int(rate * (1 << 64))) for name, rate in rates.items() if rate > 0}

    def word(self, peer: int, number: int, salt: int) -> int:
        """64 random bits."""
        word = mixed((self.seed + WEYL * (salt + 1)) & MASK)
        word = mixed((word + WEYL * ((self.rank << 32) + peer + 1)) & MASK)
        return mixed((word + WEYL * (number + 1)) & MASK)

    def faults(self, peer: int, number: int) -> list[str]:
        """What befalls the message of that number to that peer."""
        return [name for name, (salt, limit) in self.thresholds.items() if self.word(peer, number, salt) < limit]

    def choose(self, peer: int, number: int, purpose: str, count: int) -> int:
        """One of so many, 0 the first."""
        return self.word(peer, number, ~crc32(purpose.encode()) & MASK) * count >> 64
