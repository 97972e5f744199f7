"""plm/faulty: by parameter one of the classes of plm_faults."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl
from ompy_fuzz_faults import plm_faults

COMPONENT = Component(
    framework="plm",
    name="faulty",
    version="1.0",
    interface=1,
    summary="with a fault",
    parameters=(Parameter("fault", str, "", level=9, help="class of plm_faults to use; empty: none"),),
    capabilities={"unreachable": plm_faults.NOWHERE},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    return plm_faults.offer(context.value("fault"))
