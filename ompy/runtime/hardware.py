"""The hardware that this process runs on, by the names that MPI's users give its kinds (MPI-4.1, 7.4.2 and 9.1.2).

hwloc://Package    |-------------- 0 --------------|-------------- 8 --------------|
hwloc://NUMANode   |------ 0 ------|------ 4 ------|------ 8 ------|----- 12 ------|
hwloc://Core       |-- 0 --|-- 2 --|-- 4 --|-- 6 --|  ...
this process               [ may use these ]          is in package 0, in no single NUMA node, in no single core

A piece of hardware is called by its first processor, which all processes of the host know it by.
"""

from __future__ import annotations

import os
from hashlib import blake2b

from ompy.core.host import host_number
from ompy.runtime.topology import KINDS, Topology, numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

HOST = "host"
# From wide to narrow, as hwloc calls them, and so do Open MPI and MPICH.
NAMES = ("Machine", "Package", "NUMANode", "L3Cache", "L2Cache", "L1Cache", "Core", "PU")
RESOURCES = dict(zip((f"hwloc://{name}" for name in NAMES), (HOST, *KINDS), strict=True))
# MPI's own name, and the words of `ompyrun --bind-to`.
SHARED_MEMORY = "mpi_shared_memory"
KINDS_BY_NAME = {name.lower(): kind for name, kind in RESOURCES.items()} | {kind: kind for kind in RESOURCES.values()}
KINDS_BY_NAME[SHARED_MEMORY] = HOST


def kind_of(name: str | None) -> str | None:
    """The kind of hardware that is called so, in upper case or lower; None: nobody knows of it."""
    return KINDS_BY_NAME.get((name or "").lower())


def name_of(kind: str) -> str:
    """The name under which programs are told of a kind."""
    return SHARED_MEMORY if kind == HOST else next(name for name, it in RESOURCES.items() if it == kind)


def whole_host(usable: set[int]) -> Topology:
    """All processors, beyond those that this process may use."""
    online = numbers(Topology(usable).text("cpu/online"))
    return Topology(online if usable <= online else usable)


def pieces() -> dict[str, int | None]:
    """For each kind, the piece in which all processors lie that this process may use now; None: they are in several."""
    usable = os.sched_getaffinity(0)
    host = whole_host(usable)
    found: dict[str, int | None] = {HOST: 0}
    for kind in KINDS:
        found[kind] = next((min(piece) for piece in host.objects(kind) if usable <= piece), None)
    return found


def color(*words: object) -> int:
    """A color for `Split` that processes on any host have in common when they say the same words."""
    return int.from_bytes(blake2b("\0".join(map(str, words)).encode(), digest_size=7).digest(), "little")


def colors() -> dict[str, int | None]:
    """For each kind, the color of the processes that are in one piece with this one; None where it is in none."""
    return {kind: None if piece is None else color(host_number(), kind, piece) for kind, piece in pieces().items()}


def widest_split(everyone: Sequence[dict[str, int | None]]) -> str | None:
    """The widest kind of which a piece has some of those processes, but not all; None: there is none.

    Parameters:
        everyone: the `colors` of each; nothing of one that could not look.
    """
    for kind in RESOURCES.values():
        found = {its.get(kind) for its in everyone}
        if len(found) > 1:
            return kind
    return None
