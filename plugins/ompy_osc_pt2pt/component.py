"""osc/pt2pt: one-sided communication over the messages of whichever PML serves."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.core.window import Window

COMPONENT = Component(
    framework="osc",
    name="pt2pt",
    version="0.1.0",
    interface="ompy_osc_pt2pt.module",
    summary="one-sided communication over point-to-point messages",
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
        Parameter(
            "inline_limit",
            int,
            4096,
            unit="bytes",
            range=(0, 1 << 30),
            level=5,
            help="data up to this travels with the order for it; more goes as a message straight from and into the buffers",
        ),
    ),
    capabilities={"flavors": ("create", "allocate", "dynamic", "shared")},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    from ompy_osc_pt2pt.module import Pt2pt

    if context.window is None:
        return Refusal("one-sided communication is offered to a window, and none was named")
    inline_limit = context.value("inline_limit")

    def serve(window: Window) -> Pt2pt:
        return Pt2pt(window, inline_limit)

    return Offer(modules=[serve(context.window)], priority=context.value("priority"), again=serve)
