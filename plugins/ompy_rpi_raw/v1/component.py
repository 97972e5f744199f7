"""rpi/raw_v1: version I of rMPI, polling, on the simulated Raw chip."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, hookimpl

COMPONENT = Component(
    framework="rpi",
    name="raw_v1",
    version="0.1.0",
    interface="ompy_rpi_raw.v1.module",
    summary="rMPI version I: polling, 5- and 2-word headers, lists of tags",
    capabilities={"lockstep": True},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer:
    from ompy_rpi_raw.v1.module import RawV1

    return Offer(modules=[RawV1(context)], priority=10)
