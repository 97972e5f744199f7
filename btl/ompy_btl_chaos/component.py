"""btl/chaos: another transport, made unreliable on purpose."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Counter, Offer, Parameter, Refusal, hookimpl

RATES = ("drop", "duplicate", "corrupt", "delay", "reorder", "stall")

COMPONENT = Component(
    framework="btl",
    name="chaos",
    version="0.1.0",
    interface=1,
    summary="wraps another BTL and, from a seed, drops, duplicates, corrupts, delays, reorders, stalls and kills",
    parameters=(
        Parameter("wraps", str, "", level=2, help="the btl component to make unreliable; do not name it in `btl` as well"),
        Parameter(
            "seed",
            int,
            -1,
            range=(0, (1 << 63) - 1),
            also=(-1,),
            level=2,
            help="of everything random here; -1: from the job's name, and told at start",
        ),
        Parameter(
            "drop", float, 0.0, range=(0, 1), level=2, help="share of messages, puts and gets that are lost in silence, 0 to 1"
        ),
        Parameter("duplicate", float, 0.0, range=(0, 1), level=2, help="share that is carried out twice"),
        Parameter("corrupt", float, 0.0, range=(0, 1), level=2, help="share in which one bit is changed"),
        Parameter("delay", float, 0.0, range=(0, 1), level=2, help="share that is held back; messages keep their order"),
        Parameter("delay_time", float, 2.0, unit="ms", range=(0, 3600000), level=3, help="longest delay"),
        Parameter(
            "reorder",
            float,
            0.0,
            range=(0, 1),
            level=2,
            help="share of messages that later ones overtake; above 0 no order is promised",
        ),
        Parameter("reorder_distance", int, 4, unit="messages", range=(1, 65536), level=3, help="at most so many overtake one"),
        Parameter(
            "stall",
            float,
            0.0,
            range=(0, 1),
            level=2,
            help="share of messages before which the way to the peer is shut for a while",
        ),
        Parameter("stall_time", float, 50.0, unit="ms", range=(0, 3600000), level=3, help="how long it is shut"),
        Parameter("kill_rank", int, -1, range=(0, 1 << 30), also=(-1,), level=2, help="rank that kills itself; -1: none"),
        Parameter(
            "kill_at",
            int,
            1,
            unit="messages",
            range=(1, (1 << 63) - 1),
            level=2,
            help="before which of its messages, counted from 1",
        ),
    ),
    counters=(
        Counter("dropped", "messages, puts and gets that were lost", unit="messages"),
        Counter("duplicated", "those that were carried out twice", unit="messages"),
        Counter("corrupted", "those in which one bit was changed", unit="messages"),
        Counter("delayed", "those that were held back", unit="messages"),
        Counter("reordered", "those that others were let pass", unit="messages"),
        Counter("stalls", "times that the way to a peer was shut", unit="times"),
    ),
    capabilities={
        "send": True,
        **dict.fromkeys(("put", "get", "atomics", "renewal"), "where the wrapped BTL has it"),
        "in_order": "where the wrapped BTL promises it, unless messages are reordered",
        "reach": "network",
    },
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    values = {parameter.name: context.value(parameter.name) for parameter in COMPONENT.parameters}
    if context.rte is None:
        return Refusal("no run-time environment tells it which rank it is")
    if not values["wraps"]:
        return Refusal("say which transport to wrap: --mca btl_chaos_wraps zmq")
    for name in RATES:
        if not 0.0 <= values[name] <= 1.0:
            return Refusal(f"btl_chaos_{name} is {values[name]}: a share from 0 to 1 is expected")
    wrapped = context.open(values["wraps"])
    if len(wrapped) != 1:
        return Refusal(f"{values['wraps']} has {len(wrapped)} modules here; one can be wrapped")
    from ompy_btl_chaos.dice import Dice, seed_of_job
    from ompy_btl_chaos.module import ChaosBtl

    if values["seed"] < 0:
        values["seed"] = seed_of_job(context.rte.job)
        context.inform(f"--mca btl_chaos_seed {values['seed']} repeats this run's faults")
    dice = Dice(values["seed"], context.rte.rank, {name: values[name] for name in RATES})
    return Offer(modules=[ChaosBtl(wrapped[0], dice, values, lambda line: context.inform(line, private=True))])
