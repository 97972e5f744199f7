"""coll/portals: blocking collectives built straight on Puma portals."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

# What each function does, short and long (MPI on portals, section 3).
SERVED = (
    "barrier",
    "bcast",
    "gather",
    "scatter",
    "allgather",
    "reduce",
    "allreduce",
    "reduce_scatter_block",
)

COMPONENT = Component(
    framework="coll",
    name="portals",
    version="0.1.0",
    interface="ompy_coll_portals.module",
    summary="minimum spanning trees for short vectors, buckets for long ones, on Puma portals",
    parameters=(
        Parameter(
            "priority",
            int,
            60,
            unit="points",
            range=(0, 1000000),
            level=6,
            help="how much this component wants to serve; the highest does",
        ),
        Parameter(
            "short_limit",
            int,
            10240,
            unit="bytes",
            range=(0, 1 << 30),
            level=4,
            help="vectors up to here take a tree and may wait in a heap",
        ),
        Parameter(
            "drift",
            int,
            8,
            unit="collectives",
            range=(1, 65536),
            level=6,
            help="collectives that a rank may be ahead of another before all wait for one another",
        ),
    ),
    capabilities={
        "algorithms": dict.fromkeys(SERVED, ("portals",)),
        "forms": ("blocking",),
    },
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    communicator, bmls = context.communicator, context.chosen("bml")
    if communicator is None or context.rte is None:
        return Refusal("collectives are offered to a communicator, and none was named")
    if not bmls:
        return Refusal("the portals' kernel needs a bml, and none was chosen")
    if communicator.is_inter:
        return Refusal("it does not serve inter-communicators")
    if communicator.spans_jobs:
        return Refusal("some members are of another job, which has portals of its own")
    if communicator.size < 2:
        return Refusal("there is nobody to talk to")
    from ompy_coll_portals.module import PortalsModule

    module = PortalsModule(bmls[0], context.rte.rank, context.value("short_limit"), context.value("drift"))
    return Offer(modules=[module], priority=context.value("priority"), functions=SERVED)
