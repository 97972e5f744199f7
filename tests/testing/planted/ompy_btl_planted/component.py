"""btl/planted: a good transport, or by parameter one of the variants of it that each break one clause."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="btl",
    name="planted",
    version="1.0",
    interface=1,
    summary="datagrams between processes of one host, with a fault",
    parameters=(Parameter("fault", str, "", level=9, help="class of ompy_btl_planted.faults to use; empty: none"),),
    capabilities={
        "send": True,
        "put": True,
        "get": True,
        "atomics": True,
        "in_order": True,
        "renewal": True,
        "asynchronous_progress": "as a fault, which promises it in vain",
        "reach": "host",
    },
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    from ompy_btl_planted import faults
    from ompy_btl_planted.good import GoodBtl

    name = context.value("fault")
    return Offer(modules=[(getattr(faults, name) if name else GoodBtl)(context.rte)])
