"""Decision rules of coll/tuned within one host, measured by `ompy tune`.

x86_64, Linux, --mca btl sm,self, 2 to 8 ranks on 2 processors.
"""

from __future__ import annotations

MEASURED: dict[str, dict[str, dict[str, str | dict[str, str | int]]]] = {
    "bcast": {
        "4": {"0": "linear", "64KiB": {"algorithm": "binary", "segmentsize": "64KiB"}},
        "8": {
            "0": {"algorithm": "chain", "chain_fanout": 4},
            "1KiB": "linear",
            "64KiB": {"algorithm": "chain", "segmentsize": "64KiB", "chain_fanout": 4},
            "256KiB": {"algorithm": "knomial", "segmentsize": "64KiB", "tree_fanout": 4},
        },
    },
    "reduce": {
        "4": {
            "0": "pipeline",
            "64KiB": {"algorithm": "binomial", "segmentsize": "64KiB"},
            "256KiB": {"algorithm": "pipeline", "segmentsize": "64KiB"},
        },
        "8": {
            "0": "pipeline",
            "4KiB": {"algorithm": "chain", "chain_fanout": 2},
            "64KiB": {"algorithm": "knomial", "segmentsize": "64KiB", "tree_fanout": 3},
            "256KiB": {"algorithm": "pipeline", "segmentsize": "64KiB"},
        },
    },
    "barrier": {
        "4": {"0": "recursive_doubling"},
        "8": {"0": {"algorithm": "tree", "tree_fanout": 3}},
    },
    "gather": {
        "4": {"0": "linear"},
    },
    "scatter": {
        "4": {"0": "linear"},
    },
    "allgather": {
        "4": {"0": "linear"},
    },
    "allgatherv": {
        "4": {"0": "linear", "256KiB": "neighbor_exchange"},
        "8": {"0": "linear"},
    },
    "alltoall": {
        "4": {"0": "linear"},
    },
    "alltoallv": {
        "4": {"0": "linear"},
    },
    "alltoallw": {
        "4": {"0": "linear"},
    },
    "allreduce": {
        "4": {"0": "recursive_doubling", "64KiB": "rabenseifner"},
        "8": {"0": "linear", "64KiB": "rabenseifner", "256KiB": "ring"},
    },
    "reduce_scatter_block": {
        "4": {"0": "recursive_halving", "1MiB": "ring"},
        "8": {"0": "recursive_halving", "16KiB": "ring"},
    },
    "reduce_scatter": {
        "4": {"0": "recursive_halving", "256KiB": "ring"},
        "8": {"0": "nonoverlapping", "16KiB": "ring"},
    },
}
