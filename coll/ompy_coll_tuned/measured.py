"""The rules that serve where no others are set."""

from __future__ import annotations

MEASURED = {
    "barrier": {"2": {"0": "dissemination"}},
    "bcast": {"2": {"0": "binomial"}},
    "gather": {"2": {"0": "binomial"}},
    "scatter": {"2": {"0": "binomial"}},
    "allgather": {"2": {"0": "bruck", "32KiB": "ring"}},
    "allgatherv": {"2": {"0": "linear", "32KiB": "ring"}},
    "alltoall": {"2": {"0": "linear", "32KiB": "pairwise"}},
    "alltoallv": {"2": {"0": "linear"}},
    "alltoallw": {"2": {"0": "linear"}},
    "reduce": {"2": {"0": "binomial"}},
    "allreduce": {"2": {"0": "recursive_doubling", "64KiB": "rabenseifner"}},
    "reduce_scatter_block": {"2": {"0": "recursive_doubling", "4KiB": "recursive_halving"}},
    "reduce_scatter": {"2": {"0": "recursive_doubling", "4KiB": "recursive_halving"}},
}
