"""osc/faulty: by parameter one of the classes of osc_faults and osc_breaches."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl
from ompy_fuzz_faults import osc_breaches, osc_faults

COMPONENT = Component(
    framework="osc",
    name="faulty",
    version="1.0",
    interface=1,
    summary="with a fault",
    parameters=(Parameter("fault", str, "", level=9, help="class to use; empty: none"),),
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    fault = context.value("fault")
    return (osc_breaches if fault in vars(osc_breaches) else osc_faults).offer(context, fault)
