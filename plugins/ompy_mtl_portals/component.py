"""mtl/portals: MPI's matching done by the kernel of Puma portals."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Counter, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="mtl",
    name="portals",
    version="0.1.0",
    interface="ompy_mtl_portals.module",
    summary="matching lists in the receiving kernel: eager messages, one copy where a BTL can get",
    parameters=(
        Parameter(
            "heap",
            int,
            16 << 20,
            unit="bytes",
            range=(65536, 1 << 30),
            level=3,
            help="memory for messages that no receive waits for",
        ),
        Parameter(
            "short_limit",
            int,
            16384,
            unit="bytes",
            range=(0, 1 << 30),
            level=4,
            help="longer messages stay with their sender until received",
        ),
        Parameter(
            "requests",
            int,
            1 << 17,
            unit="requests",
            range=(16, 1 << 24),
            level=6,
            help="receives and long sends that may be under way at a time",
        ),
    ),
    counters=(
        Counter("unexpected", "messages that came before a receive did", unit="messages"),
        Counter("pulled", "bodies read from their senders' memory after the match", unit="messages"),
        Counter("ready_discarded", "ready messages for which no receive was posted", unit="messages"),
        Counter("stalled", "sends that waited for credit or for the kernel", unit="messages"),
        Counter("heap_used", "bytes of the heap in use", unit="bytes", kind="level"),
        Counter("heap_most_used", "the most that ever were", unit="bytes", kind="level"),
        Counter("heap_letters", "messages in the heap", unit="messages", kind="level"),
    ),
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    bmls = context.chosen("bml")
    if not bmls or context.rte is None:
        return Refusal("the portals' kernel needs a bml and a job, and one of them was not chosen")
    from ompy_mtl_portals.module import PortalsMtl

    values = {parameter.name: context.value(parameter.name) for parameter in COMPONENT.parameters}
    return Offer(modules=[PortalsMtl(bmls[0], context.rte.rank, **values)], priority=20)
