"""osc/faulty: by parameter one of the classes of ."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl
from ompy_fuzz_faults import osc_faults

COMPONENT = Component(
    framework="osc",
    name="faulty",
    version="1.0",
    interface=1,
    summary="with a fault",
    parameters=(Parameter("fault", str, "", level=9, help="class of osc_faults to use; empty: none"),),
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    return osc_faults.offer(context, context.value("fault"))
