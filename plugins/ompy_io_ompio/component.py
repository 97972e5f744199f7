"""io/ompio: files by the components of four frameworks below."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="io",
    name="ompio",
    version="0.1.0",
    interface="ompy_io_ompio.module",
    summary="files by the fs, fbtl, fcoll and sharedfp components that suit each",
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
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    from ompy_io_ompio.module import Ompio

    if context.file is None:
        return Refusal("files are served one by one, and none was named")
    return Offer(modules=[Ompio(context.file)], priority=context.value("priority"))
