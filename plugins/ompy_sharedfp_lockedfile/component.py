"""sharedfp/lockedfile: the shared pointer in a file beside the file, under a lock."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="sharedfp",
    name="lockedfile",
    version="0.1.0",
    interface=1,
    summary="a number in a hidden file beside the file, under a lock: wherever the file system has locks",
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
    file = context.file
    if file is None:
        return Refusal("a pointer is kept for a file, and none was named")
    if file.descriptor < 0:
        return Refusal("the file is none of the operating system's, so nothing can lie beside it")
    from ompy_sharedfp_lockedfile.module import LockedFile

    return Offer(modules=[LockedFile("lockedfile", file)], priority=context.value("priority"))
