"""btl/self: a process's messages to itself."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Counter, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="btl",
    name="self",
    version="0.1.0",
    interface="ompy_btl_self.module",
    summary="loopback within a process, by memory copy",
    parameters=(
        Parameter(
            "eager_limit",
            int,
            16384,
            unit="bytes",
            range=(256, 1 << 30),
            level=4,
            help="largest message sent before it is matched",
        ),
        Parameter(
            "rndv_eager_limit",
            int,
            4096,
            unit="bytes",
            range=(0, 1 << 30),
            level=5,
            help="payload that travels with a rendezvous",
        ),
        Parameter("max_send_size", int, 65536, unit="bytes", range=(256, 1 << 30), level=4, help="largest single fragment"),
        Parameter(
            "exclusivity",
            int,
            65536,
            unit="points",
            range=(0, 1000000),
            level=7,
            help="of the BTLs that reach a peer, only the highest are used",
        ),
        Parameter("latency", int, 0, unit="ns", range=(0, 10**9), level=6, help="what the BML takes this BTL's latency to be"),
        Parameter(
            "bandwidth",
            int,
            50000,
            unit="MB/s",
            range=(1, 10**9),
            level=6,
            help="what the BML takes this BTL's bandwidth to be",
        ),
    ),
    capabilities={"send": True, "put": True, "get": True, "in_order": True, "asynchronous_progress": True, "reach": "process"},
    counters=(
        Counter("messages", "messages to this process itself", unit="messages"),
        Counter("bytes", "bytes of them, headers included", unit="bytes"),
    ),
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    from ompy_btl_self.module import SelfBtl

    btl = SelfBtl()
    for parameter in COMPONENT.parameters:
        setattr(btl, parameter.name, context.value(parameter.name))
    return Offer(modules=[btl])
