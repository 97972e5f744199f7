"""pml/faulty: by parameter one of the classes of pml_faults."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl
from ompy_fuzz_faults import pml_breaches, pml_faults

COMPONENT = Component(
    framework="pml",
    name="faulty",
    version="1.0",
    interface=1,
    summary="with a fault",
    parameters=(Parameter("fault", str, "", level=9, help="class of pml_faults to use; empty: none"),),
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    fault = context.value("fault")
    return (pml_breaches if fault in vars(pml_breaches) else pml_faults).offer(context, fault)
