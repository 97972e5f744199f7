"""Decision rules of coll/han between two hosts, measured by `ompy tune --component han`.

x86_64, Linux, two network namespaces with one processor each, 2 and 4 ranks a host, over btl/tcp; without the two changes that
lasted for one size only.
"""

from __future__ import annotations

RULES: dict[str, dict[str, dict[str, str | dict[str, str | int]]]] = {
    "barrier": {
        "4": {"0": "flat"},
        "8": {"0": "two_level"},
    },
    "bcast": {
        "4": {"0": "flat"},
        "8": {"0": "two_level", "256KiB": {"algorithm": "two_level", "segmentsize": "64KiB"}},
    },
    "reduce": {
        "4": {"0": "flat"},
        "8": {"0": "flat", "256KiB": "two_level"},
    },
    "allreduce": {
        "4": {"0": "flat", "256KiB": "two_level"},
        "8": {"0": "two_level"},
    },
    "gather": {
        "4": {"0": "flat"},
    },
    "scatter": {
        "4": {"0": "flat"},
        "8": {"0": "two_level", "16KiB": "flat"},
    },
    "allgather": {
        "4": {"0": "flat"},
        "8": {"0": "two_level"},
    },
    "alltoall": {
        "4": {"0": "flat"},
        "8": {"0": "two_level", "16KiB": "flat"},
    },
}
