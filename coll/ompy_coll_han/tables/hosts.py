"""Decision rules of coll/han."""

from __future__ import annotations

RULES: dict[str, dict[str, dict[str, str | dict[str, str | int]]]] = {
    "barrier": {"1": {"0": "two_level"}},
    "bcast": {"1": {"0": "two_level"}},
    "reduce": {"1": {"0": "two_level"}},
    "allreduce": {"1": {"0": "two_level"}},
    "gather": {"1": {"0": "two_level"}},
    "scatter": {"1": {"0": "two_level"}},
    "allgather": {"1": {"0": "two_level"}},
    "alltoall": {"1": {"0": "two_level"}},
}
