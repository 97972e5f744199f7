"""btl/mailbox, of a distribution that the project knows nothing of: what it says of itself."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="btl",
    name="mailbox",
    version="1.0",
    interface=1,
    summary="datagrams between processes of one host",
    parameters=(Parameter("max_send_size", int, 32768, unit="bytes", help="header and payload of one datagram"),),
    capabilities={"send": True, "in_order": True, "reach": "host"},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    from ompy_btl_mailbox.module import MailboxBtl

    return Offer(modules=[MailboxBtl(context.value("max_send_size"))])
