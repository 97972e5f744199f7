"""Kinds of memory by how it was allocated, as programs ask for them and assert them (MPI-4.1, 11.4.3)."""

from __future__ import annotations

# Each with its restrictors ("mpi:alloc_mem").
KINDS = {"system": (), "mpi": ("alloc_mem", "win_allocate", "win_allocate_shared")}
# The info key, and what is told under it of every object.
KEY = "mpi_memory_alloc_kinds"
SUPPORTED = "mpi,system"


def known(text: str) -> list[str]:
    """Those of the kinds named, each perhaps with restrictors, that there are."""
    found = []
    for word in text.split(","):
        kind, *restrictors = word.strip().lower().split(":")
        if kind in KINDS and all(restrictor in KINDS[kind] for restrictor in restrictors):
            found.append(":".join((kind, *restrictors)))
    return found


def kinds(text: str) -> str:
    """Reads a list of kinds; ValueError where there is none of them."""
    if not (found := known(text)):
        raise ValueError(text)
    return ",".join(found)


def granted(text: str) -> str:
    """What is supported when that is asked for: those of the kinds that there are, and what is so at any rate."""
    return ",".join(dict.fromkeys([*known(text), *SUPPORTED.split(",")]))
