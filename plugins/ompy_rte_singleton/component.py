"""rte/singleton: `python prog.py` with no launcher, a job of one."""

from __future__ import annotations

import os

from ompy.mca.component import Component, Context, Offer, Refusal, hookimpl

COMPONENT = Component(
    framework="rte",
    name="singleton",
    version="0.1.0",
    interface=1,
    summary="a job of one process, without a launcher",
    capabilities={"hosts": "one", "name_service": False, "launcher": ()},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    from ompy_rte_singleton.module import SingletonRte, mismatch, started_with_peers

    if reason := started_with_peers(os.environ):
        return Refusal(reason)
    warning = mismatch(os.environ)
    return Offer(modules=[SingletonRte(lambda: context.inform(warning) if warning else None)], priority=0)
