"""What btl/tcp says of itself, and when it serves."""

from __future__ import annotations

from ompy.core.congestion import AUTO, HELP
from ompy.mca.component import Component, Context, Counter, Offer, Parameter, Refusal, hookimpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ompy.mca.rte import Rte
    from ompy_btl_tcp.module import TcpBtl

# A message of 256 KiB and its header: up to there two copies within the processors' caches take less time than to ask a peer.
ONE_PIECE = (256 << 10) + 128

COMPONENT = Component(
    framework="btl",
    name="tcp",
    version="0.1.0",
    interface="ompy_btl_tcp.module",
    summary="TCP between ranks: one connection a pair or several, from memory to memory",
    parameters=(
        Parameter(
            "security",
            str,
            "secret",
            level=2,
            choices=("secret", "tls", "none"),
            help="who may connect: secret (those who prove that they know the job's secret), tls (the same, encrypted), none "
            "(anybody); the same on every rank",
        ),
        Parameter(
            "libcrypto",
            str,
            "",
            level=4,
            help="file of the OpenSSL that encrypts by AES under security tls (/opt/openssl/lib/libcrypto.so.3); empty: the "
            "one of Python's ssl. From 3.1 on it takes less than half the time, where the processor has VAES",
        ),
        Parameter(
            "libsodium",
            str,
            "",
            level=4,
            help="file of the libsodium that encrypts by AEGIS under security tls; empty: the one of pyzmq's wheel, else the "
            "system's",
        ),
        Parameter(
            "cipher",
            str,
            "auto",
            level=3,
            choices=("auto", "aes", "aegis"),
            help="of records under security tls: aes (TLS 1.3's own suite, AES-256 in GCM as a rule), aegis (AEGIS-128L, by "
            "libsodium from 1.0.19 on, in half the time), auto (aegis between two ranks that have it, else aes)",
        ),
        Parameter(
            "if_include",
            str,
            "",
            level=2,
            help="network interfaces (eth0), addresses (10.0.0.5) or subnets (10.0.0.0/8) to use, separated by commas; empty: "
            "127.0.0.1 when all ranks are on one host, else every interface that is up and no loopback",
        ),
        Parameter(
            "if_exclude",
            str,
            "",
            level=2,
            help="interfaces, addresses or subnets not to use, separated by commas",
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
            "rndv_eager_limit",
            int,
            16384,
            unit="bytes",
            range=(0, 1 << 30),
            level=5,
            help="payload that travels with a rendezvous",
        ),
        Parameter(
            "max_send_size",
            int,
            ONE_PIECE,
            unit="bytes",
            range=(256, 1 << 29),
            level=4,
            help="largest message on the wire that its receiver does not take straight into its memory; the same on every rank",
        ),
        Parameter(
            "min_rdma_pipeline_size",
            int,
            32768,
            unit="bytes",
            range=(0, 1 << 40),
            level=5,
            help="smallest rest of a message that is received straight into the program's memory",
        ),
        Parameter(
            "rdma_pipeline_frag_size",
            int,
            4 << 20,
            unit="bytes",
            range=(4096, 1 << 30),
            level=5,
            help="largest piece of such a message that is asked for at once",
        ),
        Parameter(
            "send_queue",
            int,
            1 << 20,
            unit="bytes",
            range=(4096, 1 << 30),
            level=5,
            help="waiting for one peer, beyond what the system holds, before senders are held back",
        ),
        Parameter(
            "sndbuf",
            int,
            0,
            unit="bytes",
            range=(4096, 1 << 30),
            also=(0,),
            level=4,
            help="SO_SNDBUF; 0: the system's",
        ),
        Parameter(
            "rcvbuf",
            int,
            0,
            unit="bytes",
            range=(4096, 1 << 30),
            also=(0,),
            level=4,
            help="SO_RCVBUF; 0: the system's",
        ),
        Parameter("congestion_control", str, AUTO, level=4, help=HELP),
        Parameter(
            "connect_timeout",
            int,
            10000,
            unit="ms",
            range=(1, 86400000),
            level=5,
            help="until a peer that nobody answers for, at any of its addresses, is given up",
        ),
        Parameter(
            "links",
            int,
            1,
            unit="connections",
            range=(1, 64),
            level=3,
            help="to each peer, each over another pair of interfaces as far as there are such; messages go over all of them",
        ),
        Parameter(
            "failover_timeout",
            int,
            0,
            unit="ms",
            range=(0, 86400000),
            level=3,
            help="for which a peer may be out of reach: what it did not acknowledge is sent again when it is back; 0: it is "
            "lost with its last connection",
        ),
        Parameter(
            "failover_window",
            int,
            4 << 20,
            unit="bytes",
            range=(1 << 16, 1 << 30),
            level=5,
            help="of messages kept for one peer until it has acknowledged them, with several links or failover; the same on "
            "every rank",
        ),
        Parameter(
            "link_timeout",
            int,
            2000,
            unit="ms",
            range=(100, 86400000),
            level=5,
            help="with several links or failover: a connection ends when the peer's system acknowledges nothing for so long",
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
            help="that may be introducing themselves at once; for one more the oldest is closed (a rank calls again)",
        ),
        Parameter(
            "linger",
            int,
            1000,
            unit="ms",
            range=(0, 86400000),
            level=6,
            help="longest wait at the end, after all ranks have met, for what has not left",
        ),
        Parameter(
            "exclusivity",
            int,
            100,
            unit="points",
            range=(0, 1000000),
            level=7,
            help="of the BTLs that reach a peer, only the highest are used",
        ),
        Parameter(
            "latency", int, 10000, unit="ns", range=(0, 10**9), level=6, help="what the BML takes this BTL's latency to be"
        ),
        Parameter(
            "bandwidth", int, 5000, unit="MB/s", range=(1, 10**9), level=6, help="what the BML takes this BTL's bandwidth to be"
        ),
    ),
    capabilities={
        "send": True,
        "put": True,
        "get": False,
        "atomics": False,
        "in_order": True,
        "renewal": "where a pair has one connection, which tcp does not make again by itself",
        "reach": "network",
    },
    counters=(
        Counter("messages_sent", "messages given to connections", unit="messages"),
        Counter("bytes_sent", "bytes given to connections, headers included", unit="bytes"),
        Counter("messages_received", "messages taken from connections", unit="messages"),
        Counter("bytes_received", "bytes taken from connections", unit="bytes"),
        Counter("bytes_put", "bytes sent from the program's memory for the peer's", unit="bytes"),
        Counter("sends_held_back", "times that a peer's queue had no room", unit="times"),
        Counter("connections", "peers that a connection stands to", unit="connections", kind="level"),
        Counter("links", "connections that stand, of several to a peer or with failover", unit="connections", kind="level"),
        Counter("links_lost", "of these that ended before their peer did", unit="connections"),
        Counter("sent_again", "frames that went over another connection after that", unit="frames"),
        Counter("calls_made", "connections that this process began", unit="connections"),
        Counter("connections_rejected", "connections that did not prove to be a rank of this job", unit="connections"),
    ),
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


def make(rte: Rte, value: Callable[[str], Any]) -> TcpBtl:
    """The module that the parameters ask for; OSError when there is nowhere to listen."""
    if value("links") > 1 or value("failover_timeout"):
        from ompy_btl_tcp.bundled import BundledTcpBtl

        return BundledTcpBtl(rte, value)
    from ompy_btl_tcp.module import TcpBtl

    return TcpBtl(rte, value)


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    rte = context.rte
    if rte is None:
        return Refusal("no run-time environment tells it who its peers are")
    if context.value("security") != "none" and not rte.secret:
        return Refusal("the job has no secret to check peers by; start it under ompyrun, or give `--mca btl_tcp_security none`")
    try:
        return Offer(modules=[make(rte, context.value)], priority=15)
    except OSError as error:
        return Refusal(str(error))
