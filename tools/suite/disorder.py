"""The setting in which messages are lost, repeated, damaged and late, and proof that they were."""

from __future__ import annotations

import re
from collections import Counter
from fnmatch import fnmatchcase

from ompy.testing.suite.job import Result, Setting

RATES = {"drop": "0.01", "duplicate": "0.01", "delay": "0.05", "corrupt": "0.001"}
# What btl/chaos calls a fault of each kind once it has happened.
FAULTS = {"drop": "dropped", "duplicate": "duplicated", "delay": "delayed", "corrupt": "corrupted"}
MODULES = ("p2p_*", "cco_buf")
TOLD = re.compile(r"btl/chaos: rank \d+: of (\d+) messages: (.*)")


def setting(ranks: int, seed: int, transport: str) -> Setting:
    """pml/dr over btl/chaos around a transport."""
    rates = tuple((f"btl_chaos_{fault}", rate) for fault, rate in RATES.items())
    chaos = (("btl", "chaos,self"), ("btl_chaos_wraps", transport), ("btl_chaos_seed", str(seed)))
    return Setting(ranks, (("pml", "dr"), *chaos, *rates))


def modules(known: list[str]) -> list[str]:
    """The modules that this setting is for."""
    return [name for name in known if any(fnmatchcase(name, pattern) for pattern in MODULES)]


def fired(results: list[Result]) -> Counter[str]:
    """Messages, and faults by kind, as the ranks told at their end."""
    counts: Counter[str] = Counter()
    for result in results:
        for messages, faults in TOLD.findall(result.output):
            counts["messages"] += int(messages)
            for count, name in re.findall(r"(\d+) (\w+)", faults):
                counts[name] += int(count)
    return counts


def silent(counts: Counter[str]) -> list[str]:
    """Faults that never happened, so that nothing was shown."""
    return [fault for fault, name in FAULTS.items() if not counts[name]]
