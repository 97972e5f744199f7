"""osc/rdma: one-sided communication by remote memory access and remote atomics, of BTLs or of a layer over their messages."""

from __future__ import annotations

from ompy.core.clock import is_simulated
from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.core.window import Window

COMPONENT = Component(
    framework="osc",
    name="rdma",
    version="0.1.0",
    interface="ompy_osc_rdma.module",
    summary="one-sided communication by put, get and atomics of BTLs",
    parameters=(
        Parameter(
            "priority",
            int,
            5,
            unit="points",
            range=(0, 1000000),
            level=6,
            help="how much this component wants to serve; the highest does",
        ),
        Parameter(
            "native",
            str,
            "auto",
            level=5,
            choices=("auto", "none"),
            help="a BTL with put, get and atomics is used as it is; with none active messages serve over every BTL",
        ),
    ),
    capabilities={"flavors": ("create", "allocate", "shared", "dynamic")},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    if context.window is None:
        return Refusal("one-sided communication is offered to a window, and none was named")
    if is_simulated():
        return Refusal("time is simulated, and passes only in the simulated network's own waits")
    modules = context.chosen("bml")
    if not modules or not modules[0].btls:
        return Refusal("there are no BTLs: the PML has a network of its own")
    from ompy_osc_rdma.module import RdmaWindow

    bml, native = modules[0], context.value("native") == "auto"

    def serve(window: Window) -> RdmaWindow:
        return RdmaWindow(window, bml, native)

    return Offer(modules=[serve(context.window)], priority=context.value("priority"), again=serve)
