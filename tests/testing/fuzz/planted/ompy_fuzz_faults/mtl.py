"""mtl/faulty: by parameter one of the classes of mtl_faults."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl
from ompy_fuzz_faults import mtl_faults

COMPONENT = Component(
    framework="mtl",
    name="faulty",
    version="1.0",
    interface=1,
    summary="with a fault",
    parameters=(Parameter("fault", str, "", level=9, help="class of mtl_faults to use; empty: none"),),
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    return mtl_faults.offer(context, context.value("fault"))
