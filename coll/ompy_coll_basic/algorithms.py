"""The named algorithms of each collective as data: LAM/MPI's linear and logarithmic forms, and when each is chosen.

The first of a function's list that suits a call serves it, unless `--mca coll_basic_<function>_algorithm NAME`, or
`coll_<function>_algorithm`, names another.  What is looked at is the same on every rank, so every rank chooses the same.
All keep the order of ranks in a reduction.

    gather, 12 ranks, crossover 4        8 bytes  ->  logarithmic wants a large group, and up to 32 KiB  ->  it serves
"""

from __future__ import annotations

SMALL, LARGE, ANY = "small", "large", "any"


class Algorithm:
    """One way to carry a collective out.

    Attributes:
        name: as the parameter takes it.
        summary: one line for people.
        group: `small` up to `coll_basic_crossover` processes, `large` above, `any`: when it is chosen by itself.
        to_bytes: chosen by itself for blocks of up to this many bytes (`ompy.mca.scheduled_coll` says what a block is); -1
            is no bound.
    """

    __slots__ = ("group", "name", "summary", "to_bytes")

    def __init__(self, name: str, summary: str, *, group: str = ANY, to_bytes: int = -1) -> None:
        self.name = name
        self.summary = summary
        self.group = group
        self.to_bytes = to_bytes

    def when(self, crossover: int) -> str:
        """In words, when it is chosen by itself."""
        words = []
        if self.group != ANY:
            words.append(f"up to {crossover} processes" if self.group == SMALL else f"above {crossover} processes")
        if self.to_bytes >= 0:
            words.append(f"up to {self.to_bytes} bytes")
        return ", ".join(words) or "otherwise"


def linear(summary: str, group: str = ANY) -> Algorithm:
    return Algorithm("linear", summary, group=group)


def logarithmic(summary: str) -> Algorithm:
    return Algorithm("logarithmic", summary)


KIB = 1024
BY_ROOT = (
    linear("linear reduce, then linear scatterv", SMALL),
    logarithmic("logarithmic reduce, then linear scatterv"),
)
ALONG = (
    linear("along the ranks", SMALL),
    logarithmic("each adds what lies 1, 2, 4, ... ranks before it"),
)
TO_EACH = (linear("each sends to each, all at once"),)
NEIGHBORS = (linear("a message to and from each neighbour, all at once"),)

INTRA: dict[str, tuple[Algorithm, ...]] = {
    "barrier": (
        linear("rank 0 hears from all, then tells all", SMALL),
        logarithmic("up a binomial tree, then down"),
    ),
    "bcast": (
        linear("the root sends to each", SMALL),
        logarithmic("down a binomial tree"),
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
        linear("each sends to each, all at once", SMALL),
        logarithmic("logarithmic gather, then logarithmic bcast"),
    ),
    "allgatherv": TO_EACH,
    "alltoall": TO_EACH,
    "alltoallv": TO_EACH,
    "alltoallw": TO_EACH,
    "reduce": (
        linear("the root takes in one rank after the other", SMALL),
        logarithmic("up a binomial tree"),
    ),
    "allreduce": (
        linear("linear reduce, then linear bcast", SMALL),
        logarithmic("logarithmic reduce, then logarithmic bcast"),
    ),
    "reduce_scatter_block": BY_ROOT,
    "reduce_scatter": BY_ROOT,
    "scan": ALONG,
    "exscan": ALONG,
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
