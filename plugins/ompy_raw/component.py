"""machine/raw: the simulated Raw chip."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Refusal, hookimpl
from ompy.mca.machine import INTERFACE
from ompy_raw.parameters import PARAMETERS

COMPONENT = Component(
    framework="machine",
    name="raw",
    version="0.1.0",
    interface=INTERFACE,
    summary="the Raw chip: tiles and their general dynamic network, simulated cycle by cycle",
    parameters=PARAMETERS,
    capabilities={"tiles": "32 x 32", "message": "31 words", "buffers": "4 words"},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    return Refusal("a machine, not a service: `--mca btl gdn,self` runs on it")
