"""fs/memory: files that lie in the memory of one host."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="fs",
    name="memory",
    version="1.0.0",
    interface=1,
    summary="files called memory:NAME, in the memory of one host",
    parameters=(
        Parameter("priority", int, 20, level=6, help="how much this component wants to serve; the highest does"),
        Parameter("capacity", int, 64 << 20, unit="bytes", level=4, help="room in a file that is made"),
    ),
    capabilities={"path": "memory:"},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    from ompy_fs_memory.fs import Memory
    from ompy_fs_memory.store import PREFIX

    if context.file is None or not context.file.path.startswith(PREFIX):
        return Refusal(f"the name does not begin with {PREFIX}")
    if context.rte is not None and context.rte.local_size < context.rte.size:
        return Refusal("some ranks of the job are on other hosts")
    return Offer(modules=[Memory("memory", context.value("capacity"))], priority=context.value("priority"))
