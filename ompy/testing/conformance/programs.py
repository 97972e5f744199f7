"""The last level: random programs over the component under test, as `ompy fuzz` makes them."""

from __future__ import annotations

from collections.abc import Iterator

from ompy.testing.conformance.check import FAILED, PASSED, Check, Outcome
from ompy.testing.conformance.job import Order
from ompy.testing.conformance.kit import Result, component
from ompy.testing.fuzz import campaign, report
from ompy.testing.fuzz.runner import Place

LEVEL = "programs"
FRAMEWORKS = ("btl", "bml", "pml", "mtl", "rpi", "coll", "osc")
# Actions of programs where others would only take time from those that the component is there for.
KINDS = {"osc": ("window",)}


def run(order: Order, seconds: float) -> Iterator[Result]:
    """Run programs for so long."""
    place = Place(order.ranks, order.parameters, silence=order.silence)
    without = ("threads", "signals", "fork") if lockstep(order) else ()
    wish = campaign.Wish(order.seed, seconds, kinds=KINDS.get(order.framework, ()), without=without)
    check = Check("random_programs", ("whole MPI programs",), lambda rank: None)
    try:
        outcome = campaign.run(place, wish)
    except RuntimeError as error:
        yield Result(order, check, Outcome(FAILED, "", str(error)), 0.0)
        return
    told = report.told(place, wish, outcome.found) if outcome.found else f"{outcome.operations} operations"
    yield Result(order, check, Outcome(FAILED if outcome.found else PASSED, "", told), outcome.seconds)


def lockstep(order: Order) -> bool:
    """Whether the component goes on only while every rank makes progress, as it declares."""
    return bool(component(order.framework, order.component).capabilities.get("lockstep"))
