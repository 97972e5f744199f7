"""fcoll/two_phase: collective accesses put together in memory that the ranks of one host share, or by messages."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="fcoll",
    name="two_phase",
    version="0.1.0",
    interface="ompy_fcoll_two_phase.module",
    summary="interleaved pieces are put together, in shared memory or by messages, and written as one; or read as one",
    parameters=(
        Parameter(
            "priority",
            int,
            30,
            unit="points",
            range=(0, 1000000),
            level=6,
            help="how much this component wants to serve; the highest does",
        ),
        Parameter(
            "long_piece",
            int,
            16384,
            unit="bytes",
            range=(0, 1 << 40),
            level=5,
            help="where every rank's pieces of the file are at least so long, each rank moves its own",
        ),
        Parameter(
            "read_twice",
            int,
            1 << 20,
            unit="bytes",
            range=(0, 1 << 40),
            level=6,
            help="where less of the file than this would be read by more than one rank, each rank reads its own with the gaps",
        ),
        Parameter(
            "exchange",
            str,
            "auto",
            choices=("auto", "memory", "messages"),
            level=5,
            help="how pieces are put together: in memory that the ranks of one host share, or by messages; auto: as they can",
        ),
    ),
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    file = context.file
    if file is None:
        return Refusal("collective accesses are carried out for a file, and none was named")
    if file.communicator.size == 1:
        return Refusal("there is nobody to write together with")
    way = context.value("exchange")
    shared = file.communicator.all_local() if way == "auto" else way == "memory"
    if shared and not file.communicator.all_local():
        return Refusal("some of its ranks are on other hosts")
    from ompy_fcoll_two_phase.module import TwoPhase

    return Offer(
        modules=[TwoPhase(file, context.value("long_piece"), context.value("read_twice"), shared)],
        priority=context.value("priority"),
    )
