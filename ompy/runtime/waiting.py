"""How this rank waits: the progress engine's times, set from parameters and from how crowded the host is."""

from __future__ import annotations

from ompy.core import progress
from ompy.mca.params import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.mca.rte import Rte


PARAMETERS = ("mpi_yield_when_idle", "mpi_spin_us", "mpi_watch_us", "mpi_yield_us")


def configure(rte: Rte) -> None:
    """Set the engine's times for a rank of this job, now and whenever a parameter of theirs is set."""
    for name in PARAMETERS:
        registry.watch(name, lambda: apply(rte))
    apply(rte)


def apply(rte: Rte) -> None:
    choice = registry.value("mpi_yield_when_idle")
    progress.configure(
        crowded=choice == "yes" or (choice == "auto" and rte.is_crowded),
        crowded_by_helpers=choice == "auto" and 2 * rte.local_size > rte.processors,
        spin_us=registry.value("mpi_spin_us"),
        watch_us=registry.value("mpi_watch_us"),
        yield_us=registry.value("mpi_yield_us"),
    )
