"""pml/cm: MPI's messages over a transport that matches."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Refusal, hookimpl

COMPONENT = Component(
    framework="pml",
    name="cm",
    version="0.1.0",
    interface="ompy_pml_cm.module",
    summary="messages matched by the transport below (an MTL, such as portals)",
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    from ompy_pml_cm.module import Cm

    bmls = context.chosen("bml")
    return Offer(modules=[Cm(context.select("mtl")[0], bmls[0] if bmls else None)], priority=10)
