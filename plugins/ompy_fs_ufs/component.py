"""fs/ufs: files that the operating system has, by descriptors."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="fs",
    name="ufs",
    version="0.1.0",
    interface=1,
    summary="whatever file system the operating system has mounted",
    parameters=(
        Parameter(
            "priority",
            int,
            10,
            unit="points",
            range=(0, 1000000),
            level=6,
            help="how much this component wants to serve; the highest does",
        ),
    ),
    capabilities={"descriptor": True},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    from ompy_fs_ufs.module import Ufs

    return Offer(modules=[Ufs("ufs")], priority=context.value("priority"))
