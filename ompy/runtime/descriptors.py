"""How many descriptors a launcher or a proxy may have: what it starts costs it some."""

from __future__ import annotations

import os

# Those of a rank: what it writes, PMI, its stacks, and files for its output; those of a proxy: link and agent.
A_RANK = 7
A_PROXY = 3
# What the process needs for itself.
OWN = 64


def make_room(count: int) -> None:
    """Have this process allowed so many beyond those that it has, as far as the system lets it."""
    from resource import RLIMIT_NOFILE, getrlimit, setrlimit

    needed = len(os.listdir("/proc/self/fd")) + OWN + count
    soft, hard = getrlimit(RLIMIT_NOFILE)
    if needed > soft:
        setrlimit(RLIMIT_NOFILE, (min(needed, hard), hard))
