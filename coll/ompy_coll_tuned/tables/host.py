"""Decision rules of coll/tuned within one host, measured by `ompy tune`.

x86_64, Linux, --mca btl sm,self, 2 to 8 ranks on 2 processors.
"""

from __future__ import annotations

RULES: dict[str, dict[str, dict[str, str | dict[str, str | int]]]] = {
    "barrier": {
        "2": {"0": "dissemination"},
        "3": {"0": "recursive_doubling"},
        "4": {"0": "dissemination"},
        "5": {"0": "recursive_doubling"},
        "6": {"0": "dissemination"},
        "7": {"0": {"algorithm": "tree", "tree_fanout": 4}},
        "8": {"0": "dissemination"},
    },
    "bcast": {
        "2": {"0": "linear", "64KiB": {"algorithm": "binomial", "segmentsize": "64KiB"}},
        "3": {"0": "binary", "16": "linear", "64KiB": {"algorithm": "binomial", "segmentsize": "64KiB"}},
        "4": {"0": "linear", "64KiB": {"algorithm": "binary", "segmentsize": "64KiB"}},
        "5": {"0": "linear", "64KiB": {"algorithm": "binomial", "segmentsize": "64KiB"}},
        "7": {"0": "linear", "64KiB": {"algorithm": "knomial", "segmentsize": "64KiB", "tree_fanout": 3}},
        "8": {"0": "linear", "64KiB": {"algorithm": "binomial", "segmentsize": "64KiB"}},
    },
    "gather": {
        "2": {"0": "binomial"},
        "3": {"0": "linear"},
    },
    "scatter": {
        "2": {"0": "binomial"},
        "4": {"0": "linear"},
    },
    "allgather": {
        "2": {"0": "neighbor_exchange"},
        "3": {"0": "linear"},
        "8": {"0": "linear", "256KiB": "ring"},
    },
    "allgatherv": {
        "2": {"0": "neighbor_exchange"},
        "3": {"0": "linear"},
    },
    "alltoall": {
        "2": {"0": "linear"},
    },
    "alltoallv": {
        "2": {"0": "linear"},
    },
    "alltoallw": {
        "2": {"0": "pairwise"},
        "3": {"0": "linear"},
    },
    "reduce": {
        "2": {"0": "binomial", "64KiB": {"algorithm": "binomial", "segmentsize": "64KiB"}},
        "3": {"0": "linear", "64KiB": {"algorithm": "pipeline", "segmentsize": "64KiB"}},
        "4": {"0": "linear", "16KiB": "binomial", "64KiB": {"algorithm": "binomial", "segmentsize": "64KiB"}},
        "5": {"0": "linear", "64KiB": {"algorithm": "pipeline", "segmentsize": "64KiB"}},
        "6": {
            "0": "linear",
            "64KiB": {"algorithm": "knomial", "segmentsize": "64KiB", "tree_fanout": 3},
            "256KiB": {"algorithm": "pipeline", "segmentsize": "64KiB"},
        },
        "7": {
            "0": "linear",
            "64KiB": {"algorithm": "knomial", "segmentsize": "64KiB", "tree_fanout": 4},
            "256KiB": {"algorithm": "pipeline", "segmentsize": "64KiB"},
        },
        "8": {
            "0": "linear",
            "16KiB": "binomial",
            "64KiB": {"algorithm": "binomial", "segmentsize": "64KiB"},
            "1MiB": {"algorithm": "chain", "segmentsize": "64KiB", "chain_fanout": 2},
        },
    },
    "allreduce": {
        "2": {"0": "recursive_doubling", "16KiB": "ring"},
        "3": {"0": "recursive_doubling", "16KiB": "linear", "64KiB": "ring", "1MiB": "rabenseifner"},
        "4": {"0": "recursive_doubling", "16KiB": "linear", "64KiB": "rabenseifner"},
        "5": {"0": "linear", "64KiB": "ring"},
        "6": {"0": "linear", "256KiB": "ring"},
        "7": {"0": "linear", "64KiB": "rabenseifner", "256KiB": "ring"},
        "8": {"0": "linear", "64KiB": "ring"},
    },
    "reduce_scatter_block": {
        "2": {"0": "ring"},
        "4": {"0": "recursive_doubling", "256": "recursive_halving", "256KiB": "ring"},
        "5": {"0": "linear", "16KiB": "ring"},
        "6": {"0": "linear", "4KiB": "recursive_halving", "16KiB": "ring"},
        "7": {"0": "linear", "16KiB": "ring"},
    },
    "reduce_scatter": {
        "2": {"0": "ring"},
        "4": {"0": "recursive_doubling", "256": "recursive_halving", "16KiB": "ring"},
        "5": {"0": "linear", "1KiB": "recursive_halving", "16KiB": "ring"},
        "7": {"0": "linear", "4KiB": "recursive_halving", "16KiB": "ring"},
        "8": {"0": "linear", "16KiB": "ring"},
    },
}
