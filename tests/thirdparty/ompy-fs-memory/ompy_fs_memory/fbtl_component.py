"""fbtl/memory: bytes of files that fs/memory has opened."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="fbtl",
    name="memory",
    version="1.0.0",
    interface=1,
    summary="bytes of files in the memory of one host",
    parameters=(Parameter("priority", int, 20, level=6, help="how much this component wants to serve; the highest does"),),
    capabilities={"path": "memory:"},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    from ompy_fs_memory.fbtl import Bytes
    from ompy_fs_memory.store import Store

    if context.file is None or not isinstance(context.file.handle, Store):
        return Refusal("fs/memory has not opened the file")
    return Offer(modules=[Bytes("memory", context.file)], priority=context.value("priority"))
