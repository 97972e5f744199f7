"""bml/r2: routes to each peer by reachability, exclusivity, latency and bandwidth."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Refusal, hookimpl

COMPONENT = Component(
    framework="bml",
    name="r2",
    version="0.1.0",
    interface=1,
    summary="eager, send and rdma lists for each peer, made at first contact",
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    btls = context.chosen("btl")
    if not btls:
        return Refusal("no BTL was chosen")
    from ompy_bml_r2.module import R2

    return Offer(modules=[R2(btls)], priority=10)
