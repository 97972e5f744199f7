"""Decision rules of coll/tuned over a network, measured by `ompy tune`.

x86_64, Linux, --mca btl zmq,self, 2 to 8 ranks on 2 processors of one host.
"""

from __future__ import annotations

RULES: dict[str, dict[str, dict[str, str | dict[str, str | int]]]] = {
    "barrier": {
        "2": {"0": "recursive_doubling"},
        "3": {"0": {"algorithm": "tree", "tree_fanout": 4}},
        "8": {"0": {"algorithm": "tree", "tree_fanout": 3}},
    },
    "bcast": {
        "2": {"0": "linear", "256KiB": "binomial"},
        "4": {"0": "linear"},
        "5": {"0": "binomial", "256": "linear"},
        "6": {"0": "linear", "1MiB": {"algorithm": "chain", "chain_fanout": 2}},
        "7": {"0": "linear", "4KiB": {"algorithm": "knomial", "tree_fanout": 4}},
        "8": {
            "0": {"algorithm": "knomial", "tree_fanout": 3},
            "16": "linear",
            "64KiB": {"algorithm": "chain", "chain_fanout": 4},
            "1MiB": "binomial",
        },
    },
    "gather": {
        "2": {"0": "linear"},
        "3": {"0": "binomial"},
        "4": {"0": "linear"},
    },
    "scatter": {
        "2": {"0": "binomial"},
        "3": {"0": "linear"},
    },
    "allgather": {
        "2": {"0": "bruck", "64": "neighbor_exchange"},
        "3": {"0": "linear"},
        "6": {"0": "nonoverlapping", "64KiB": "linear"},
        "8": {"0": "nonoverlapping", "16KiB": "recursive_doubling", "256KiB": "linear"},
    },
    "allgatherv": {
        "2": {"0": "linear"},
    },
    "alltoall": {
        "2": {"0": "linear"},
        "7": {"0": "linear", "16": "bruck", "16KiB": "linear", "1MiB": "pairwise"},
        "8": {"0": "bruck", "16KiB": "linear"},
    },
    "alltoallv": {
        "2": {"0": "linear"},
    },
    "alltoallw": {
        "2": {"0": "pairwise"},
        "3": {"0": "linear"},
    },
    "reduce": {
        "2": {"0": "binomial"},
        "3": {"0": "binary"},
        "4": {"0": "linear"},
        "5": {"0": "linear", "256KiB": "binary"},
        "6": {"0": "linear", "256KiB": {"algorithm": "knomial", "tree_fanout": 4}},
        "7": {"0": "linear"},
        "8": {
            "0": {"algorithm": "knomial", "tree_fanout": 3},
            "16": "linear",
            "256": {"algorithm": "knomial", "tree_fanout": 3},
            "1KiB": "linear",
        },
    },
    "allreduce": {
        "2": {"0": "recursive_doubling"},
        "3": {"0": "linear", "256KiB": "recursive_doubling"},
        "4": {"0": "recursive_doubling", "64KiB": "linear"},
        "5": {"0": "linear"},
    },
    "reduce_scatter_block": {
        "2": {"0": "ring"},
        "3": {"0": "ring", "256KiB": "pairwise"},
        "4": {"0": "recursive_halving", "1MiB": "pairwise"},
        "5": {"0": "linear", "256KiB": "pairwise"},
        "8": {"0": "linear", "256KiB": "ring"},
    },
    "reduce_scatter": {
        "2": {"0": "recursive_doubling", "4KiB": "pairwise", "1MiB": "ring"},
        "3": {"0": "ring"},
        "4": {"0": "linear", "4KiB": "recursive_halving", "256KiB": "pairwise"},
        "5": {"0": "linear", "64KiB": "ring"},
        "6": {"0": "linear", "16KiB": "recursive_halving", "64KiB": "ring", "256KiB": "pairwise"},
        "7": {"0": "linear", "64KiB": "ring"},
        "8": {"0": "linear", "256KiB": "ring"},
    },
}
