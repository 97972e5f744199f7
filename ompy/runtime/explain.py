"""Why a message to a peer goes the way it goes, and which components serve a collective or a file."""

from __future__ import annotations

from ompy.core.errors import ERR_ARG, ERR_RANK, MPIError
from ompy.core.proc import process_table
from ompy.mca import selection
from ompy.mca.errors import UnreachableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.core.communicator import Communicator


class Explanation:
    """One component's part.

    Attributes:
        component: its name.
        chosen: whether it serves.
        priority: what it offered; None when it made no offer.
        reason: why, in words.
    """

    __slots__ = ("chosen", "component", "priority", "reason")

    def __init__(self, component: str, chosen: bool, priority: int | None, reason: str) -> None:
        self.component = component
        self.chosen = chosen
        self.priority = priority
        self.reason = reason

    def __repr__(self) -> str:
        return f"<{self.component} {'chosen' if self.chosen else 'not chosen'}: {self.reason}>"


def explain_peer(rank: int) -> list[Explanation]:
    """Which transports lead to a rank of the world, and why: an entry for each `btl` component that is installed."""
    size = len(process_table())
    if not 0 <= rank < size:
        raise MPIError(ERR_RANK, f"peer {rank} is not in 0..{size - 1}, the ranks of this job")
    proc = process_table().get(rank)
    (pml,) = selection.chosen_modules["pml"]
    try:
        pml.add_proc(proc)
        verdicts = [] if proc.routes is None else proc.routes.verdicts
    except UnreachableError as error:
        verdicts = error.verdicts
    offered = {verdict.component: verdict for verdict in selection.verdicts("btl")}
    told = []
    for component, chosen, reason in verdicts:
        verdict = offered.pop(component, None)
        told.append(Explanation(component, chosen, verdict.priority if verdict else None, reason))
    told += [Explanation(verdict.component, False, verdict.priority, verdict.reason) for verdict in offered.values()]
    return sorted(told, key=lambda explanation: not explanation.chosen)


def explain_collective(function: str, nbytes: int, communicator: Communicator) -> list[Explanation]:
    """Which `coll` component serves a function of a communicator, and why; then the winner's algorithms, the first that
    suits first.

    Parameters:
        function: `allreduce`, `bcast`, ...
        nbytes: of the message on one rank.
    """
    from ompy.mca.coll import FUNCTIONS

    if function not in FUNCTIONS:
        from ompy.mca.errors import suggestion

        names = list(FUNCTIONS)
        raise MPIError(ERR_ARG, f"no collective is called {function}; known: {', '.join(names)}.{suggestion(function, names)}")
    number = FUNCTIONS.index(function)
    told = []
    for name, component, priority, chosen, reason in communicator.coll.verdicts:
        if name == function:
            told.append(Explanation(component, chosen, priority, reason))
            if chosen:
                algorithms = communicator.coll.module(number).explain(number, communicator, nbytes)
                told += [
                    Explanation(f"{component}: {it.name}", serves, None, f"{it.summary}; taken: {when}")
                    for it, serves, when in algorithms
                ]
    # A verdict is the latest on a component, perhaps on another communicator: those told of here have been dealt with.
    offered = {component for _, component, *_ in communicator.coll.verdicts}
    told += [
        Explanation(verdict.component, False, None, verdict.reason)
        for verdict in selection.verdicts("coll")
        if not verdict.chosen and verdict.component not in offered
    ]
    return told


def explain_file(path: str, communicator: Communicator) -> list[Explanation]:
    """Which components serve a file, and why; collective: the file is opened to read, and closed."""
    from ompy.core.file import MODE_RDONLY
    from ompy.runtime.files import close_file, open_file

    file = open_file(communicator, path, MODE_RDONLY, {})
    told = [
        Explanation(f"{framework}/{component}", chosen, priority, reason)
        for framework, component, priority, chosen, reason in file.verdicts
    ]
    close_file(file)
    return told
