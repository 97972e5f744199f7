"""hook/comm_method: at the end of bring-up, shows which transport each rank uses towards each other one."""

from __future__ import annotations

from ompy.mca.component import Component, Parameter, hookimpl
from ompy.mca.params import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMPONENT = Component(
    framework="hook",
    name="comm_method",
    version="0.1.0",
    interface=1,
    summary="shows which transport each rank uses towards each other one",
    parameters=(
        Parameter("display", bool, False, level=3, help="print the rank by rank table of transports at the end of bring-up"),
        Parameter(
            "max", int, 32, unit="ranks", range=(0, 1 << 30), level=3, help="larger jobs get a summary in place of the table"
        ),
    ),
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_initialized(instance: Any) -> None:
    if registry.value("hook_comm_method_display"):
        from ompy_hook_comm_method.display import display

        display(instance.rte, instance.pml, registry.value("hook_comm_method_max"))
