"""rte/faulty: by parameter one of the classes of rte_faults."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl
from ompy_fuzz_faults import rte_faults

COMPONENT = Component(
    framework="rte",
    name="faulty",
    version="1.0",
    interface=1,
    summary="with a fault",
    parameters=(Parameter("fault", str, "", level=9, help="class of rte_faults to use; empty: none"),),
    capabilities={"launcher": ("python", "-m", "ompy_rte_planted", "-n", "{ranks}")},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    return rte_faults.offer(context, context.value("fault"))
