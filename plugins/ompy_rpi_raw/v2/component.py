"""rpi/raw_v2: version II of rMPI, interrupt driven, three hash tables, on the simulated Raw chip."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, hookimpl

COMPONENT = Component(
    framework="rpi",
    name="raw_v2",
    version="0.1.0",
    interface="ompy_rpi_raw.v2.module",
    summary="rMPI version II: interrupt driven, 7- and 3-word headers, three hash tables",
    capabilities={"lockstep": True},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer:
    from ompy_rpi_raw.v2.module import RawV2

    return Offer(modules=[RawV2(context)], priority=20)
