"""osc/portals: windows as memory descriptors behind match entries, which the kernels of Puma portals serve."""

from __future__ import annotations

from ompy.core.clock import is_simulated
from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.core.window import Window

COMPONENT = Component(
    framework="osc",
    name="portals",
    version="0.1.0",
    interface="ompy_osc_portals.module",
    summary="one-sided communication on Puma portals, with no call at the target",
    parameters=(
        Parameter(
            "priority",
            int,
            60,
            unit="points",
            range=(0, 1000000),
            level=6,
            help="how much this component wants to serve; the highest does",
        ),
        Parameter(
            "regions",
            int,
            65536,
            unit="regions",
            range=(16, 1 << 24),
            level=6,
            help="stretches of memory of all windows together: each has two, and one for each that is attached",
        ),
    ),
    capabilities={
        "flavors": ("create", "allocate", "shared", "dynamic"),
    },
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    window, rte, bmls = context.window, context.rte, context.chosen("bml")
    if window is None or rte is None:
        return Refusal("one-sided communication is offered to a window, and none was named")
    if is_simulated():
        return Refusal("time is simulated, and passes only in the simulated network's own waits")
    if not bmls or not bmls[0].btls:
        return Refusal("the portals' kernel needs a bml with BTLs, and there is none")
    from ompy_osc_portals.module import PortalsWindow

    bml, regions = bmls[0], context.value("regions")

    def serve(window: Window) -> PortalsWindow | Refusal:
        module = PortalsWindow(window, bml, rte.rank, rte.size, regions)
        reason = module.reach()
        return Refusal(reason) if reason else module

    answer = serve(window)
    if isinstance(answer, Refusal):
        return answer
    return Offer(modules=[answer], priority=context.value("priority"), again=serve)
