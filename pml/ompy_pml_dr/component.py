"""pml/dr: messages over transports that lose, damage, repeat and reorder them."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Counter, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="pml",
    name="dr",
    version="0.1.0",
    interface=1,
    summary="data reliability: ob1 over BTLs whose messages are numbered, checked, acknowledged and sent again",
    parameters=(
        Parameter(
            "packet_size",
            int,
            65536,
            unit="bytes",
            range=(256, 1 << 30),
            level=4,
            help="longest packet; it is what one loss costs",
        ),
        Parameter(
            "window", int, 64, unit="packets", range=(1, 64), level=5, help="not yet acknowledged by one peer, at most 64"
        ),
        Parameter(
            "window_bytes",
            int,
            4 << 20,
            unit="bytes",
            range=(256, 1 << 40),
            level=5,
            help="the same, in bytes: what is kept to be sent again",
        ),
        Parameter(
            "ack_delay",
            float,
            1.0,
            unit="ms",
            range=(0, 60000),
            level=5,
            help="an acknowledgement waits so long for a message to ride on",
        ),
        Parameter(
            "timeout",
            float,
            50.0,
            unit="ms",
            range=(0.1, 3600000),
            level=5,
            help="until a packet is first sent again; then as measured",
        ),
        Parameter(
            "timeout_min",
            float,
            10.0,
            unit="ms",
            range=(0.1, 3600000),
            level=6,
            help="shortest time-out, however quick the peer is",
        ),
        Parameter(
            "timeout_max",
            float,
            1000.0,
            unit="ms",
            range=(0.1, 3600000),
            level=5,
            help="longest time-out; each one doubles the next",
        ),
        Parameter(
            "retry_limit",
            int,
            300,
            unit="packets",
            range=(1, 1000000),
            level=3,
            help="a packet that was sent again so often in vain, by default for five minutes, means that its peer is lost",
        ),
        Parameter(
            "failover_timeout",
            float,
            0.0,
            unit="ms",
            range=(0, 86400000),
            level=3,
            help="for which a peer may be out of reach over every BTL that can make contact anew: what it did not acknowledge "
            "is sent when one has; 0: it is lost with the last of them",
        ),
        Parameter(
            "help_interval",
            float,
            20.0,
            unit="ms",
            range=(0.1, 60000),
            also=(0,),
            level=5,
            help="a thread looks for packets so often, also while the program computes; 0: only calls of MPI do",
        ),
    ),
    counters=(
        Counter("packets_sent", "packets, each counted once", unit="packets"),
        Counter("packets_sent_again", "times that a packet was sent again", unit="times"),
        Counter("repeated_packets_dropped", "packets that had come before", unit="packets"),
        Counter("damaged_packets_dropped", "packets whose checksum was wrong", unit="packets"),
        Counter("acknowledgements_sent", "acknowledgements that found no message to ride on", unit="packets"),
        Counter("window_full", "times that as much was under way to a peer as may be", unit="times"),
        Counter("peers_lost", "peers that were given up", unit="peers"),
        Counter("paths_lost", "times that one BTL had lost a peer, and others carried on or it was waited for", unit="times"),
        Counter("paths_renewed", "times that a BTL reached a peer again that it had lost", unit="times"),
    ),
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    found = context.chosen("bml")
    if not found or context.rte is None:
        return Refusal("dr needs a bml and a run-time environment")
    values = {parameter.name: context.value(parameter.name) for parameter in COMPONENT.parameters}
    if not 1 <= values["window"] <= 64:
        return Refusal(f"pml_dr_window is {values['window']}: from 1 to 64 packets are possible")
    from ompy_pml_dr.channels import Channels
    from ompy_pml_dr.helper import Helper
    from ompy_pml_dr.module import ReliableBtl

    rte = context.rte
    interval = values.pop("help_interval") / 1000
    helper = Helper(interval) if interval > 0 and rte.size > 1 else None
    own = {name: values.pop(name) for name in ("packet_size", "window", "window_bytes")}
    channels = Channels(helper, **values)
    found[0].wrap(lambda btl: ReliableBtl(btl, rte.job, rte.rank, rte.size, channels, **own))
    return Offer(modules=context.open("ob1"), priority=10)
