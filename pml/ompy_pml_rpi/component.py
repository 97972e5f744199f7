"""pml/rpi: LAM/MPI's split of an MPI layer above a request progression interface."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, hookimpl

COMPONENT = Component(
    framework="pml",
    name="rpi",
    version="0.1.0",
    interface="ompy_pml_rpi.module",
    # Its RPIs are of simulated chips.
    capabilities={
        "lockstep": True,
        "departures": {
            "loss": "a request progression interface does not tell of processes that are lost: the job ends with them"
        },
    },
    summary="LAM/MPI's MPI layer over a request progression interface (rMPI on the Raw chip)",
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer:
    assert context.rte is not None
    [rpi] = context.select("rpi")
    from ompy_pml_rpi.module import RpiPml

    return Offer(modules=[RpiPml(rpi, context.rte.rank)], priority=10)
