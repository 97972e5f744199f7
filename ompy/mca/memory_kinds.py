"""Kinds of memory by how it was allocated, as programs ask for them and assert them (MPI-4.1, 11.4.3)."""

from __future__ import annotations

from ompy.mca.params import registry

# Each with its restrictors ("mpi:alloc_mem").
KINDS = {"system": (), "mpi": ("alloc_mem", "win_allocate", "win_allocate_shared")}
# The info key, which is the parameter's name too.
KEY = "mpi_memory_alloc_kinds"


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


def supported(asked: str | None = None) -> str:
    """What is told under the key: those of the kinds that there are, mpi and system at any rate.

    Parameters:
        asked: what a session was opened with; None: whatever the job was started with.
    """
    text: str = registry.value(KEY) if asked is None else asked
    return ",".join(dict.fromkeys([*known(text), "mpi", "system"]))
