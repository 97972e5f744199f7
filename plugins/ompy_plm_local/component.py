"""plm/local: proxies on this machine itself, whatever the hosts are called."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Refusal, hookimpl

COMPONENT = Component(
    framework="plm",
    name="local",
    version="0.1.0",
    interface=1,
    summary="every host is this machine: to try a job of many hosts without any",
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    from ompy_plm_local.module import LocalPlm

    return Offer(modules=[LocalPlm()], priority=0)
