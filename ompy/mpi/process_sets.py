"""Sets of processes that have a name (MPI-4.1, 11.3.2)."""

from __future__ import annotations

from ompy.runtime import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.core.communicator import Communicator

WORLD = "mpi://WORLD"
SELF = "mpi://SELF"
NAMES = (WORLD, SELF)


def members(name: str) -> Communicator | None:
    """The core communicator that has the members of a set; None: no set is called so."""
    if name == WORLD:
        return identity.world_communicator()
    return identity.own if name == SELF else None


def color(name: str) -> int | None:
    """A color for `Split` that the members of the set have in common, and nobody else; None: no set is called so.

    Jobs that have met have each a set of that name.
    """
    from ompy.runtime import hardware

    if name == WORLD:
        return hardware.color(name, identity.rte.job)
    return hardware.color(name, identity.rte.job, identity.rte.rank) if name == SELF else None
