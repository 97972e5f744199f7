"""btl/gdn: the general dynamic network of the simulated Raw chip."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, hookimpl

COMPONENT = Component(
    framework="btl",
    name="gdn",
    version="0.1.0",
    interface="ompy_btl_gdn.module",
    summary="the network of the simulated Raw chip, one rank a tile; serves only when named",
    parameters=(
        Parameter(
            "eager_limit",
            int,
            4096,
            unit="bytes",
            range=(256, 1 << 30),
            level=4,
            help="largest message sent before it is matched",
        ),
        Parameter(
            "rndv_eager_limit",
            int,
            1024,
            unit="bytes",
            range=(0, 1 << 30),
            level=5,
            help="payload that travels with a rendezvous",
        ),
        Parameter("max_send_size", int, 32768, unit="bytes", range=(256, 1 << 30), level=4, help="largest single fragment"),
        Parameter(
            "exclusivity",
            int,
            0,
            unit="points",
            range=(0, 1000000),
            level=7,
            help="of the BTLs that reach a peer, only the highest are used",
        ),
        Parameter(
            "latency", int, 1000, unit="ns", range=(0, 10**9), level=6, help="what the BML takes this BTL's latency to be"
        ),
        Parameter(
            "bandwidth", int, 1700, unit="MB/s", range=(1, 10**9), level=6, help="what the BML takes this BTL's bandwidth to be"
        ),
    ),
    capabilities={
        "send": True,
        "put": False,
        "get": False,
        "in_order": True,
        "reach": "host",
        "lockstep": True,
    },
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer:
    from ompy_btl_gdn.module import GdnBtl

    btl = GdnBtl(context)
    for parameter in COMPONENT.parameters:
        setattr(btl, parameter.name, context.value(parameter.name))
    return Offer(modules=[btl])
