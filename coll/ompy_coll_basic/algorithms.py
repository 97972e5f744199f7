"""The named algorithms of each collective as data: what each is called, what it can serve, and when it is chosen by itself.

The first of a function's list that suits a call serves it, unless `--mca coll_basic_<function>_algorithm NAME`, or
`coll_<function>_algorithm`, names another.  A named one that cannot serve a call (a ring on an operation that doesn't
commute) leaves it to the list.  What is looked at is the same on every rank, so every rank chooses the same.

    allreduce, 12 ranks, crossover 4        8 bytes  ->  ring wants 256 KiB, linear wants a small group  ->  logarithmic
"""

from __future__ import annotations

SMALL, LARGE, ANY = "small", "large", "any"


class Algorithm:
    """One way to carry a collective out.

    Attributes:
        name: as the parameter takes it.
        summary: one line for people.
        group: `small` up to `coll_basic_crossover` processes, `large` above, `any`: when it is chosen by itself.
        from_bytes, to_bytes: chosen by itself for blocks of this many bytes, the bounds included; what a block is, is
            said by `measure` in `choice.pyx`.  `to_bytes` -1 is no bound.
        ordered: keeps the ranks' order in a reduction, and so serves operations that don't commute.
        by_name: never chosen by itself.
    """

    __slots__ = ("by_name", "from_bytes", "group", "name", "ordered", "summary", "to_bytes")

    def __init__(
        self,
        name: str,
        summary: str,
        *,
        group: str = ANY,
        from_bytes: int = 0,
        to_bytes: int = -1,
        ordered: bool = True,
        by_name: bool = False,
    ) -> None:
        self.name = name
        self.summary = summary
        self.group = group
        self.from_bytes = from_bytes
        self.to_bytes = to_bytes
        self.ordered = ordered
        self.by_name = by_name

    def when(self, crossover: int) -> str:
        """In words, when it is chosen by itself."""
        if self.by_name:
            return "only by name"
        words = []
        if self.group != ANY:
            words.append(f"up to {crossover} processes" if self.group == SMALL else f"above {crossover} processes")
        if self.from_bytes:
            words.append(f"from {self.from_bytes} bytes")
        if self.to_bytes >= 0:
            words.append(f"up to {self.to_bytes} bytes")
        if not self.ordered:
            words.append("operations that commute")
        return ", ".join(words) or "otherwise"


def linear(summary: str, group: str = ANY) -> Algorithm:
    return Algorithm("linear", summary, group=group)


KIB = 1024
NEIGHBORS = (linear("a message to and from each neighbour, all at once"),)

INTRA: dict[str, tuple[Algorithm, ...]] = {
    "barrier": (
        linear("rank 0 hears from all, then tells all", SMALL),
        Algorithm("logarithmic", "up a binomial tree, then down"),
        Algorithm("dissemination", "each tells the one 1, 2, 4, ... ranks further", by_name=True),
    ),
    "bcast": (
        Algorithm("scatter_allgather", "scatter down a tree, then a ring", group=LARGE, from_bytes=512 * KIB),
        linear("the root sends to each", SMALL),
        Algorithm("logarithmic", "down a binomial tree"),
    ),
    "gather": (
        Algorithm("logarithmic", "up a binomial tree", group=LARGE, to_bytes=32 * KIB),
        linear("each sends to the root"),
    ),
    "gatherv": (linear("each sends to the root"),),
    "scatter": (
        Algorithm("logarithmic", "down a binomial tree", group=LARGE, to_bytes=32 * KIB),
        linear("the root sends to each"),
    ),
    "scatterv": (linear("the root sends to each"),),
    "allgather": (
        Algorithm("ring", "each block goes round", from_bytes=32 * KIB),
        linear("each sends to each, all at once", SMALL),
        Algorithm("logarithmic", "logarithmic gather, then logarithmic bcast"),
    ),
    "allgatherv": (
        Algorithm("ring", "each block goes round", from_bytes=32 * KIB),
        linear("each sends to each, all at once"),
    ),
    "alltoall": (
        Algorithm("pairwise", "one partner after the other", from_bytes=32 * KIB),
        Algorithm("logarithmic", "Bruck: blocks travel 1, 2, 4, ... ranks together", group=LARGE, to_bytes=256),
        linear("each sends to each, all at once"),
    ),
    "alltoallv": (
        linear("each sends to each, all at once"),
        Algorithm("pairwise", "one partner after the other", by_name=True),
    ),
    "alltoallw": (
        linear("each sends to each, all at once"),
        Algorithm("pairwise", "one partner after the other", by_name=True),
    ),
    "reduce": (
        linear("the root takes in one rank after the other", SMALL),
        Algorithm("logarithmic", "up a binomial tree"),
    ),
    "allreduce": (
        Algorithm("ring", "parts are reduced round a ring, then go round again", from_bytes=256 * KIB, ordered=False),
        linear("linear reduce, then linear bcast", SMALL),
        Algorithm("logarithmic", "logarithmic reduce, then logarithmic bcast"),
        Algorithm("recursive_doubling", "partners 1, 2, 4, ... ranks away swap and reduce", by_name=True),
    ),
    "reduce_scatter_block": (
        Algorithm("pairwise", "one partner after the other", from_bytes=64 * KIB, ordered=False),
        linear("linear reduce, then linear scatterv", SMALL),
        Algorithm("logarithmic", "logarithmic reduce, then linear scatterv"),
    ),
    "reduce_scatter": (
        Algorithm("pairwise", "one partner after the other", from_bytes=64 * KIB, ordered=False),
        linear("linear reduce, then linear scatterv", SMALL),
        Algorithm("logarithmic", "logarithmic reduce, then linear scatterv"),
    ),
    "scan": (
        linear("along the ranks", SMALL),
        Algorithm("logarithmic", "each adds what lies 1, 2, 4, ... ranks before it"),
    ),
    "exscan": (
        linear("along the ranks", SMALL),
        Algorithm("logarithmic", "each adds what lies 1, 2, 4, ... ranks before it"),
    ),
    "neighbor_allgather": NEIGHBORS,
    "neighbor_allgatherv": NEIGHBORS,
    "neighbor_alltoall": NEIGHBORS,
    "neighbor_alltoallv": NEIGHBORS,
    "neighbor_alltoallw": NEIGHBORS,
}

# Between two groups every message crosses from one group to the other: no local phase, so no local communicator.
BETWEEN = (linear("messages between the groups alone"),)
INTER: dict[str, tuple[Algorithm, ...]] = {
    name: BETWEEN for name in INTRA if not name.startswith("neighbor_") and name not in ("scan", "exscan")
}
