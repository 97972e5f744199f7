"""rpi/raw_v3: version III of rMPI, interrupt driven, posted receives filled in place, on the simulated Raw chip."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, hookimpl

COMPONENT = Component(
    framework="rpi",
    name="raw_v3",
    version="0.1.0",
    interface="ompy_rpi_raw.v3.module",
    summary="rMPI version III: interrupt driven, 4- and 1-word headers, posted receives filled in place",
    capabilities={"lockstep": True},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer:
    from ompy_rpi_raw.v3.module import RawV3

    return Offer(modules=[RawV3(context)], priority=30)
