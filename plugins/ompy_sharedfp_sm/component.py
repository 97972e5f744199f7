"""sharedfp/sm: the shared pointer in memory that the ranks of one host share."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="sharedfp",
    name="sm",
    version="0.1.0",
    interface="ompy_sharedfp_sm.module",
    summary="a number in memory that the ranks of one host share",
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
    ),
    capabilities={"reach": "host"},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    file = context.file
    if file is None:
        return Refusal("a pointer is kept for a file, and none was named")
    if not file.communicator.all_local():
        return Refusal("some of its ranks are on other hosts")
    from ompy_sharedfp_sm.module import SharedMemory

    return Offer(modules=[SharedMemory(file)], priority=context.value("priority"))
