"""fcoll/individual: each rank moves its own bytes."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="fcoll",
    name="individual",
    version="0.1.0",
    interface=1,
    summary="collective accesses in which each rank moves its own bytes",
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
    from ompy_fcoll_individual.module import Individual

    if context.file is None:
        return Refusal("collective accesses are carried out for a file, and none was named")
    return Offer(modules=[Individual("individual", context.file)], priority=context.value("priority"))
