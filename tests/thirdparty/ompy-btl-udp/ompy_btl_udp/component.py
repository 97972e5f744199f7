"""What btl/udp says of itself, and when it serves."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

INTERFACE = 1  # of the btl contract that this component is written against

COMPONENT = Component(
    framework="btl",
    name="udp",
    version="1.0.0",
    interface=INTERFACE,
    summary="UDP between ranks, made reliable, ordered and authentic; in plain Python",
    parameters=(
        Parameter(
            "address",
            str,
            "",
            level=2,
            help="own address to use; empty: 127.0.0.1 when all ranks are on one host, else the one that leads out of it",
        ),
        Parameter(
            "datagram_size",
            int,
            8192,
            unit="bytes",
            range=(53, 65507),
            level=4,
            help="largest datagram, its header of 52 bytes included; 1472 passes Ethernet whole",
        ),
        Parameter(
            "window", int, 16, unit="datagrams", range=(1, 65536), level=5, help="on their way to one peer and not acknowledged"
        ),
        Parameter(
            "eager_limit",
            int,
            32768,
            unit="bytes",
            range=(256, 1 << 30),
            level=4,
            help="header and payload sent before a match",
        ),
        Parameter(
            "max_send_size",
            int,
            65536,
            unit="bytes",
            range=(256, 1 << 30),
            level=4,
            help="header and payload of one message; it is cut",
        ),
        Parameter(
            "drop",
            float,
            0.0,
            range=(0, 1),
            level=9,
            help="for tests: share of the datagrams to throw away instead of sending them",
        ),
        Parameter("seed", int, 0, range=(0, (1 << 63) - 1), level=9, help="for tests: which ones"),
    ),
    capabilities={"send": True, "put": False, "get": False, "atomics": False, "in_order": True, "reach": "network"},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    rte = context.rte
    if rte is None:
        return Refusal("no run-time environment tells it who its peers are")
    if not rte.secret and rte.size > 1:
        return Refusal("the job has no secret to know its datagrams by; start it under ompyrun")
    from ompy_btl_udp.module import UdpBtl

    try:
        return Offer(modules=[UdpBtl(rte, context.value)])
    except (OSError, ValueError) as error:
        return Refusal(f"btl_udp: {error}")
