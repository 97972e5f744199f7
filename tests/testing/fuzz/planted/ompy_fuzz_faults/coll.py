"""coll/faulty: by parameter one of the classes of coll_faults and coll_breaches."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl
from ompy_fuzz_faults import coll_breaches, coll_faults

COMPONENT = Component(
    framework="coll",
    name="faulty",
    version="1.0",
    interface=1,
    summary="with a fault",
    parameters=(Parameter("fault", str, "", level=9, help="class to use; empty: none"),),
    capabilities={"inter": True},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    fault = context.value("fault")
    return (coll_breaches if fault in vars(coll_breaches) else coll_faults).offer(context, fault)
