"""The named algorithms of each collective as data: what each is called, what it can serve, and what serves where it can't.

Which of them is chosen for a call is no matter of theirs but of the rules (`ompy.mca.coll_rules`).
"""

from __future__ import annotations

from ompy.mca.coll_rules import EVEN, POWER_OF_TWO, Algorithm, Catalogue

LINEAR_TREE = Algorithm("linear", "the root and each rank, straight")
TREES = (
    LINEAR_TREE,
    Algorithm("chain", "chain_fanout chains from the root", segmented=True, fanout="chain_fanout"),
    Algorithm("pipeline", "one chain of all ranks", segmented=True),
    Algorithm("binary", "a binary tree", segmented=True),
    Algorithm("binomial", "a binomial tree", segmented=True),
    Algorithm("knomial", "a k-nomial tree of radix tree_fanout", segmented=True, fanout="tree_fanout"),
)
TO_ROOT = (LINEAR_TREE, Algorithm("binomial", "a binomial tree"))
AT_ONCE = Algorithm("linear", "each sends to each, all at once")
PAIRWISE = Algorithm("pairwise", "one partner after the other")
RING = Algorithm("ring", "each block goes round")
NEIGHBOR_EXCHANGE = Algorithm("neighbor_exchange", "neighbours swap, two blocks a round", sizes=EVEN, otherwise="ring")
BY_PARTS = (
    Algorithm("linear", "linear reduce, then linear scatterv"),
    Algorithm("nonoverlapping", "reduce up a binomial tree, then linear scatterv"),
    Algorithm("recursive_doubling", "all of it on every rank, which keeps its part"),
    Algorithm("recursive_halving", "partners swap halves", ordered=False, otherwise="recursive_doubling"),
    Algorithm("pairwise", "one partner after the other", ordered=False, otherwise="recursive_doubling"),
    Algorithm("ring", "each part goes round, and is added to", ordered=False, otherwise="recursive_doubling"),
)

ALGORITHMS: dict[str, tuple[Algorithm, ...]] = {
    "barrier": (
        Algorithm("tree", "up a k-nomial tree of radix tree_fanout, then down", fanout="tree_fanout"),
        Algorithm("dissemination", "each tells the one 1, 2, 4, ... ranks further"),
        Algorithm("recursive_doubling", "partners 1, 2, 4, ... ranks away tell each other"),
    ),
    "bcast": (
        *TREES,
        Algorithm(
            "scatter_allgather",
            "scatter down a binomial tree, then recursive doubling",
            sizes=POWER_OF_TWO,
            otherwise="scatter_allgather_ring",
        ),
        Algorithm("scatter_allgather_ring", "scatter down a binomial tree, then a ring"),
    ),
    "gather": TO_ROOT,
    "scatter": TO_ROOT,
    "allgather": (
        AT_ONCE,
        Algorithm("bruck", "blocks gather from 1, 2, 4, ... ranks further"),
        Algorithm(
            "recursive_doubling", "partners 1, 2, 4, ... ranks away swap all they have", sizes=POWER_OF_TWO, otherwise="bruck"
        ),
        RING,
        NEIGHBOR_EXCHANGE,
        Algorithm("nonoverlapping", "gather up a binomial tree, then bcast down it"),
    ),
    "allgatherv": (AT_ONCE, RING, NEIGHBOR_EXCHANGE),
    "alltoall": (AT_ONCE, PAIRWISE, Algorithm("bruck", "blocks travel 1, 2, 4, ... ranks together")),
    "alltoallv": (AT_ONCE, PAIRWISE),
    "alltoallw": (AT_ONCE, PAIRWISE),
    "reduce": (
        *TREES,
        Algorithm("rabenseifner", "recursive halving, then a gather", ordered=False, otherwise="binomial"),
    ),
    "allreduce": (
        Algorithm("linear", "linear reduce, then linear bcast"),
        Algorithm("nonoverlapping", "reduce up a binomial tree, then bcast down it"),
        Algorithm("recursive_doubling", "partners 1, 2, 4, ... ranks away swap and reduce"),
        Algorithm(
            "rabenseifner",
            "recursive halving, then recursive doubling",
            ordered=False,
            otherwise="recursive_doubling",
        ),
        Algorithm("ring", "parts are reduced round a ring, then go round again", ordered=False, otherwise="recursive_doubling"),
    ),
    "reduce_scatter_block": BY_PARTS,
    "reduce_scatter": BY_PARTS,
}

CATALOGUE = Catalogue("tuned", ALGORITHMS)
