"""osc/sm: one-sided communication by loads and stores, where all processes of a window are on one host."""

from __future__ import annotations

from ompy.core.clock import is_simulated
from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.core.window import Window

# Microseconds: some round trips between two cores.
PATIENCE = 2.0

COMPONENT = Component(
    framework="osc",
    name="sm",
    version="0.1.0",
    interface="ompy_osc_sm.module",
    summary="one-sided communication by loads and stores, among processes of one host",
    parameters=(
        Parameter(
            "priority",
            int,
            40,
            unit="points",
            range=(0, 1000000),
            level=6,
            help="how much this component wants to serve; the highest does",
        ),
        Parameter("max_procs", int, 256, unit="processes", range=(1, 4096), level=5, help="larger windows are left to others"),
        Parameter(
            "spins",
            int,
            300,
            unit="rounds",
            range=(0, 1 << 30),
            level=8,
            help="rounds of looking before a wait is the progress engine's",
        ),
        Parameter(
            "patience",
            float,
            -1.0,
            unit="us",
            range=(0, 1e7),
            also=(-1.0,),
            level=7,
            help="how long a short access to memory outside the shared heap waits for its target to do it, before the kernel "
            "does; 0: the kernel at once, -1: 2 where every rank has a core, else 0",
        ),
        Parameter(
            "single_copy",
            str,
            "auto",
            level=5,
            choices=("auto", "none"),
            help="what reads and writes memory outside the shared heap: the kernel; with none such windows are left to others",
        ),
    ),
    capabilities={
        "flavors": {
            "create": "memory in the shared heap, or a kernel that may copy",
            "allocate": "a shared heap",
            "shared": True,
            "dynamic": "a kernel that may copy",
        },
        "reach": "host",
    },
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    window, rte = context.window, context.rte
    if window is None or rte is None:
        return Refusal("one-sided communication is offered to a window, and none was named")
    size = window.communicator.size
    if is_simulated():
        return Refusal("time is simulated: loads and stores would pass by the simulated network")
    if size > context.value("max_procs"):
        return Refusal(f"{size} processes are more than osc_sm_max_procs, {context.value('max_procs')}", lasting=True)
    from ompy_osc_sm.module import SmWindow

    spins, given, by_kernel = context.value("spins"), context.value("patience"), context.value("single_copy") == "auto"

    def serve(window: Window) -> SmWindow | Refusal:
        crowded = rte.is_crowded
        patience = given if given >= 0 else 0.0 if crowded else PATIENCE
        module = SmWindow(window, spins, crowded, patience)
        reason = module.share(by_kernel)
        return Refusal(reason) if reason else module

    answer = serve(window)
    if isinstance(answer, Refusal):
        return answer
    return Offer(modules=[answer], priority=context.value("priority"), again=serve)
