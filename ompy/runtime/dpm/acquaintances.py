"""The processes of other jobs that this one knows, from the meeting with them to the last communicator that they share.

    (job, rank) -> index in the process table -> card and circle, until first contact -> Proc

Two processes are connected as long as they are in one communicator that was not disconnected (MPI-4.1, 11.10.4).
"""

from __future__ import annotations

from ompy.core.errors import ERR_COMM, MPIError
from ompy.core.proc import process_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ompy.core.circle import Circle

    Identity = tuple[str, int]


class Acquaintance:
    """Who a process is, before first contact.

    Parameters:
        job, rank: its job's name, and its rank in that job's world.
        card: as it was published.
        circle, number: where it is known from.
    """

    __slots__ = ("card", "circle", "job", "number", "rank")

    def __init__(self, job: str, rank: int, card: bytes, circle: Circle, number: int) -> None:
        self.job = job
        self.rank = rank
        self.card = card
        self.circle = circle
        self.number = number


indices: dict[Identity, int] = {}
known: dict[int, Acquaintance] = {}
# Of those beside this job of whom the launcher says that they have failed: how, by identity.
failed: dict[Identity, str] = {}


def remember(job: str, rank: int, card: bytes, circle: Circle, number: int) -> int:
    """A process that was not known: its index from now on."""
    index = process_table().extend(1)
    indices[job, rank] = index
    known[index] = Acquaintance(job, rank, card, circle, number)
    return index


def of(index: int) -> Acquaintance:
    """Raises MPIError for a process that is known no more."""
    if index not in known:
        raise MPIError(ERR_COMM, "this process is disconnected from the one that the group speaks of")
    return known[index]


def part_from(leaving: Iterable[int], let_go: Callable[[int], None]) -> list[Circle]:
    """Forget processes; returns the circles of which nobody is known any more."""
    circles = set()
    for index in leaving:
        let_go(index)
        it = known.pop(index)
        del indices[it.job, it.rank]
        circles.add(it.circle)
    return [circle for circle in circles if not any(it.circle is circle for it in known.values())]


def jobs() -> list[str]:
    """The other jobs that this process knows anybody of."""
    return sorted({it.job for it in known.values()})


def failure_in(job: str) -> str:
    """How the first process of a job has failed; empty where none has, as far as this one has heard."""
    return next((f"its rank {rank} {how}" for (name, rank), how in failed.items() if name == job), "")


def forget_all() -> None:
    """At the end of MPI."""
    indices.clear()
    known.clear()
    failed.clear()
