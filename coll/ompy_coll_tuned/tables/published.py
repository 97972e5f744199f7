"""The rules for more ranks than were measured: those of Thakur, Rabenseifner & Gropp, "Optimization of collective
communication operations in MPICH", IJHPCA 19(1), 2005, sections 4.1 to 4.6.

They switch by all bytes of an allgather or reduce_scatter; here that is by those of a block, of 16 ranks and of 128.  Gathers
and scatters, which they do not treat, follow coll/basic.
"""

from __future__ import annotations

BY_PARTS: dict[str, dict[str, str | dict[str, str | int]]] = {
    "9": {"0": "recursive_halving", "32KiB": "pairwise"},
    "64": {"0": "recursive_halving", "4KiB": "pairwise"},
}

RULES: dict[str, dict[str, dict[str, str | dict[str, str | int]]]] = {
    "barrier": {"9": {"0": "dissemination"}},
    "bcast": {"9": {"0": "binomial", "12KiB": "scatter_allgather", "512KiB": "scatter_allgather_ring"}},
    "gather": {"9": {"0": "binomial", "32KiB": "linear"}},
    "scatter": {"9": {"0": "binomial", "32KiB": "linear"}},
    "allgather": {
        "9": {"0": "recursive_doubling", "32KiB": "ring"},
        "64": {"0": "recursive_doubling", "4KiB": "ring"},
    },
    "allgatherv": {"9": {"0": "ring"}},
    "alltoall": {"9": {"0": "bruck", "257": "linear", "32KiB": "pairwise"}},
    "alltoallv": {"9": {"0": "linear"}},
    "alltoallw": {"9": {"0": "linear"}},
    "reduce": {"9": {"0": "binomial", "2KiB": "rabenseifner"}},
    "allreduce": {"9": {"0": "recursive_doubling", "2KiB": "rabenseifner"}},
    "reduce_scatter_block": BY_PARTS,
    "reduce_scatter": BY_PARTS,
}
