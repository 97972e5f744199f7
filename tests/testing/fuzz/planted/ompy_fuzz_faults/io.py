"""io/faulty: by parameter one of the classes of io_faults."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="io",
    name="faulty",
    version="1.0",
    interface=1,
    summary="with a fault",
    parameters=(Parameter("fault", str, "", level=9, help="class of io_faults to use; empty: none"),),
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    from ompy_fuzz_faults import io_faults

    if context.file is None:
        return Refusal("files are served one by one")
    made = getattr(io_faults, context.value("fault") or "PlantedModule")
    return Offer(modules=[made("faulty", context.file)])
