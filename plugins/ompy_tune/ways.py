"""What is measured: every algorithm of a function, with the segment sizes and fan-outs worth trying."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ompy.mca import discovery, loading

# Whose algorithms are measured, unless it is said, and whose can be: beside which components, and with which parameters.
TUNED = "tuned"
MEASURED: dict[str, tuple[tuple[str, str], ...]] = {
    TUNED: (("coll", "tuned,basic"),),
    "han": (("coll", "han,sm,tuned,basic"), ("coll_han_first_calls", "0")),
}
SEGMENTS = (0, 8 << 10, 64 << 10)
FANOUTS = {"tree_fanout": (2, 3, 4), "chain_fanout": (2, 4)}
# On two ranks every tree is this one.
ONLY_TREE = "binomial"


class Way:
    """An algorithm with its numbers.

    Attributes:
        algorithm: its name.
        numbers: segment size and fan-out, where it takes them, under the parameters' names.
    """

    def __init__(self, algorithm: str, numbers: Mapping[str, int] | None = None) -> None:
        self.algorithm = algorithm
        self.numbers = dict(numbers or {})

    def __str__(self) -> str:
        return " ".join([self.algorithm, *(f"{name}={number}" for name, number in self.numbers.items())])

    @classmethod
    def parse(cls, text: str) -> Way:
        """What `str` made."""
        algorithm, *numbers = text.split()
        pairs = (word.partition("=") for word in numbers)
        return cls(algorithm, {name: int(number) for name, _, number in pairs})

    def parameters(self, function: str, component: str = TUNED) -> dict[str, Any]:
        """MCA parameters that force it."""
        numbers = {f"coll_{component}_{function}_{name}": number for name, number in self.numbers.items()}
        return {f"coll_{component}_{function}_algorithm": self.algorithm, **numbers}


def declared(component: str = TUNED, what: str = "tunings") -> Mapping[str, Any]:
    """Of each function of a component, its algorithms, and what can be set of each (or, "sizes", which numbers of ranks it
    serves)."""
    capabilities = loading.load(discovery.installed()["coll"][component]).component.capabilities
    found: Mapping[str, Any] = capabilities[what]  # type: ignore
    return found


def serves(sizes: str, ranks: int) -> bool:
    return {"even": ranks % 2 == 0, "a power of two": ranks & (ranks - 1) == 0}.get(sizes, True)


def ways(function: str, ranks: int, component: str = TUNED) -> Iterator[Way]:
    """All ways of a function on so many ranks that differ from each other."""
    algorithms: Mapping[str, tuple[str, ...]] = declared(component)[function]
    for name, taken in algorithms.items():
        if not serves(declared(component, "sizes")[function][name], ranks):
            continue
        if ranks == 2 and "segmentsize" in taken and name != ONLY_TREE:
            continue
        fanout = next((number for number in taken if number in FANOUTS), "")
        for segment in SEGMENTS if "segmentsize" in taken else (0,):
            for number in fanouts(algorithms, fanout, ranks) if fanout else (0,):
                numbers = {"segmentsize": segment} if segment else {}
                yield Way(name, numbers | ({fanout: number} if fanout else {}))


def fanouts(algorithms: Collection[str], fanout: str, ranks: int) -> list[int]:
    """Those that make a tree which no other algorithm is: a child for every rank is linear, radix 2 binomial."""
    found = [number for number in FANOUTS[fanout] if number < ranks - 1 or "linear" not in algorithms]
    return [number for number in found if (fanout, number) != ("tree_fanout", 2) or ONLY_TREE not in algorithms]
