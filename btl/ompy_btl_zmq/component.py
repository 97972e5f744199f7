"""What btl/zmq says of itself, and when it serves."""

from __future__ import annotations

from ompy.core.congestion import AUTO, HELP
from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ompy.mca.rte import Rte
    from ompy_btl_zmq.module import ZmqBtl

INTERFACE = 1  # of the btl contract that this component is written against

# A message of 1 MiB and its header.  To ask a peer first costs two latencies of some 45 us each, half of what the bytes
# themselves take; sending them in smaller pieces gained nothing in any size measured.
ONE_PIECE = (1 << 20) + 4096

COMPONENT = Component(
    framework="btl",
    name="zmq",
    version="0.1.0",
    interface=INTERFACE,
    summary="TCP between ranks through ZeroMQ, in plain Python",
    parameters=(
        Parameter(
            "security",
            str,
            "plain",
            level=2,
            choices=("plain", "curve", "none"),
            help="who may connect: plain (those who know the job's secret), curve (the same, encrypted), none (anybody)",
        ),
        Parameter(
            "interface",
            str,
            "",
            level=2,
            help="network interface (eth0) or address (10.0.0.5) to listen on, for several links separated by commas; empty: "
            "127.0.0.1 when all ranks are on one host, else the interfaces that are up and no loopback, from the first on",
        ),
        Parameter(
            "links",
            int,
            1,
            unit="links",
            range=(1, 64),
            level=3,
            help="to each peer, each over the next interface, and a BTL of its own: long messages are shared out among "
            "them; the same on every rank",
        ),
        Parameter(
            "port_min",
            int,
            0,
            range=(1, 65535),
            also=(0,),
            level=2,
            help="first TCP port to try; 0 lets the system choose any free one",
        ),
        Parameter(
            "port_range",
            int,
            1000,
            unit="ports",
            range=(1, 65536),
            level=3,
            help="how many ports from port_min on may be tried",
        ),
        Parameter(
            "eager_limit",
            int,
            ONE_PIECE,
            unit="bytes",
            range=(256, 1 << 30),
            level=4,
            help="header and payload sent before a match",
        ),
        Parameter(
            "max_send_size",
            int,
            ONE_PIECE,
            unit="bytes",
            range=(256, 1 << 29),
            level=4,
            help="header and payload of one message on the wire",
        ),
        Parameter(
            "high_water_mark",
            int,
            64,
            unit="messages",
            range=(1, 1 << 20),
            level=5,
            help="waiting for one peer before senders are held back",
        ),
        Parameter(
            "kept_memory",
            int,
            64 << 20,
            unit="bytes",
            range=(0, 1 << 30),
            level=5,
            help="freed memory that the process keeps for later messages instead of returning it to the system; "
            "0 leaves that to the C library",
        ),
        Parameter("congestion_control", str, AUTO, level=4, help=HELP),
        Parameter(
            "connect_timeout",
            int,
            10000,
            unit="ms",
            range=(1, 86400000),
            level=5,
            help="until a peer that nobody answers for is given up",
        ),
        Parameter(
            "handshake_timeout",
            int,
            10000,
            unit="ms",
            range=(1, 86400000),
            level=6,
            help="until a connection that does not introduce itself is closed",
        ),
        Parameter(
            "handshakes",
            int,
            128,
            unit="connections",
            range=(1, 65536),
            level=6,
            help="that may be introducing themselves at once; more are not accepted until some of these are through",
        ),
        Parameter(
            "linger",
            int,
            100,
            unit="ms",
            range=(0, 86400000),
            level=6,
            help="longest wait at the end, after all ranks have met, for what has not left",
        ),
    ),
    capabilities={
        "send": True,
        "put": False,
        "get": False,
        "atomics": False,
        "in_order": True,
        "asynchronous_progress": True,
        "renewal": True,
        "reach": "network",
    },
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


def made(rte: Rte, value: Callable[[str], Any]) -> list[ZmqBtl]:
    """A module for each link; OSError when there is nowhere to listen, and then none is left open."""
    from ompy_btl_zmq.module import ZmqBtl

    modules: list[ZmqBtl] = []
    try:
        for link in range(value("links")):
            modules.append(ZmqBtl(rte, value, link))
    except OSError:
        for module in modules:
            module.finalize()
        raise
    return modules


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    rte = context.rte
    if rte is None:
        return Refusal("no run-time environment tells it who its peers are")
    if context.value("security") != "none" and not rte.secret:
        return Refusal(
            "the job has no secret to check peers by; start it under ompyrun, or choose `--mca btl_zmq_security none`"
        )
    try:
        return Offer(modules=made(rte, context.value), priority=10)
    except OSError as error:
        return Refusal(str(error))
