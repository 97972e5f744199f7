"""btl/portals: bytes through Puma portals, over another transport."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Counter, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="btl",
    name="portals",
    version="0.1.0",
    interface="ompy_btl_portals.module",
    summary="active messages, put and get on Puma portals, over another BTL that it opens",
    parameters=(
        Parameter(
            "carrier",
            str,
            "auto",
            level=3,
            help="the btl component that the portals' kernel rides on; auto: sm where all ranks share a host, else zmq",
        ),
        Parameter(
            "heap", int, 1 << 20, unit="bytes", range=(65536, 1 << 30), level=5, help="memory in which active messages arrive"
        ),
        Parameter(
            "regions",
            int,
            65536,
            unit="regions",
            range=(16, 1 << 24),
            level=6,
            help="stretches of memory that may be registered at a time",
        ),
        Parameter(
            "registration_budget",
            int,
            64 << 20,
            unit="bytes",
            range=(0, 1 << 40),
            level=5,
            help="unused registrations kept for the next transfer",
        ),
        Parameter(
            "exclusivity",
            int,
            1024,
            unit="points",
            range=(0, 1000000),
            level=7,
            help="of the BTLs that reach a peer, only the highest are used",
        ),
    ),
    capabilities={
        "send": True,
        "put": True,
        "get": True,
        "atomics": True,
        "in_order": True,
        "reach": "network",
    },
    counters=(
        Counter("messages_sent", "active messages sent to peers' heaps", unit="messages"),
        Counter("messages_received", "active messages taken from the heap", unit="messages"),
        Counter("bytes_put", "bytes written into peers' regions", unit="bytes"),
        Counter("bytes_got", "bytes read from peers' regions", unit="bytes"),
    ),
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    if context.rte is None:
        return Refusal("no run-time environment tells it which rank it is")
    name = context.value("carrier")
    if name == "auto":
        name = "sm" if context.rte.local_size == context.rte.size else "zmq"
    carriers = context.open(name)
    if len(carriers) != 1:
        return Refusal(f"{name} has {len(carriers)} modules here; the kernel rides on one")
    from ompy_btl_portals.module import PortalsBtl

    btl = PortalsBtl(carriers[0], context.rte.rank, context.value("heap"), context.value("regions"))
    btl.exclusivity = context.value("exclusivity")
    btl.registration_budget = context.value("registration_budget")
    return Offer(modules=[btl])
