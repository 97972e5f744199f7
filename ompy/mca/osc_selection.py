"""Which component serves a window.

All components are asked for the first window of each kind: of its flavor, over as many ranks, of whose hosts as much is known.
Where every one says that its answer holds for the kind (`Offer.again`, `Refusal.lasting`), the one that won is given the next
windows alone, until a parameter is set; a window that it can't serve goes to all again.
"""

from __future__ import annotations

from ompy.mca.component import Offer, Refusal
from ompy.mca.errors import ComponentError
from ompy.mca.frameworks import declare
from ompy.mca.hook import hooks
from ompy.mca.params import registry
from ompy.mca.selection import Candidate, candidates, highest, query
from ompy.mca.verdicts import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy.core.window import Window
    from ompy.mca.osc import OscModule
    from ompy.mca.verdicts import Verdict

    Kind = tuple[int, int, int]
    Maker = Callable[[Window], OscModule | Refusal]


class Plans:
    """Who serves the windows of each kind, as long as no parameter is set."""

    def __init__(self) -> None:
        self.by_kind: dict[Kind, tuple[Maker, dict[str, Verdict]]] = {}
        self.generation = -1

    def keep(self, kind: Kind, maker: Maker) -> None:
        if self.generation != registry.generation:
            self.by_kind.clear()
            self.generation = registry.generation
        self.by_kind[kind] = maker, record.frameworks["osc"]

    def module(self, kind: Kind, window: Window) -> OscModule | None:
        """Of who serves the kind; None where nobody is known to, or can't serve this one."""
        if self.generation != registry.generation or kind not in self.by_kind:
            return None
        maker, told = self.by_kind[kind]
        answer = maker(window)
        if isinstance(answer, Refusal):
            return None
        record.frameworks["osc"] = told
        return answer


plans = Plans()


def select_onesided(window: Window) -> OscModule:
    """Choose who serves one window: the highest priority.  Collective.

    Raises ComponentError when nobody can, with every component's reason.
    """
    communicator = window.communicator
    kind = window.flavor, communicator.size, communicator.placement
    module = plans.module(kind, window)
    if module is None:
        module = asked(kind, window)
    module.open()
    return module


def asked(kind: Kind, window: Window) -> OscModule:
    declare()
    record.frameworks["osc"] = {}  # a plan may keep the one before
    found, by_name = candidates("osc")
    answers = [query(it, by_name, window=window) for it in found]
    offers = [Candidate(component, answer) for component, answer in answers if component and isinstance(answer, Offer)]
    if not offers:
        raise ComponentError(f"no osc component can serve the window:{record.table('osc')}")
    winner = highest("osc", offers).offer
    lasting = all(answer.lasting for _, answer in answers if isinstance(answer, Refusal))
    promised = all(candidate.offer.again is not None for candidate in offers)
    # Whoever watches queries, or wants to be told of them, sees each.
    watched = hooks.manager is not None or registry.value("osc_base_verbose") > 0
    # Of those that span jobs, each has hosts of its own.
    if winner.again and promised and lasting and not watched and not window.communicator.spans_jobs:
        plans.keep(kind, winner.again)
    module: OscModule = winner.modules[0]
    return module


def forget() -> None:
    """Before another bring-up in the same process: nothing is decided."""
    plans.by_kind.clear()
