"""fbtl/posix: bytes by pread and pwrite."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Counter, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="fbtl",
    name="posix",
    version="0.1.0",
    interface="ompy_fbtl_posix.module",
    summary="pread and pwrite on a descriptor, copies where a part of the file is moved again and again",
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
            "sieve_distance",
            int,
            16384,
            unit="bytes",
            range=(0, 1 << 40),
            level=6,
            help="from one piece of a view to the next, on the average: pieces that lie farther apart are read one by one",
        ),
        Parameter(
            "map_from",
            int,
            65536,
            unit="bytes",
            range=(0, 1 << 40),
            level=5,
            help="accesses from this length on to a part of the file that is moved again and again are copies to and from its "
            "pages; 0: none is",
        ),
        Parameter(
            "map_after",
            int,
            4,
            unit="times",
            range=(0, 1000000),
            level=6,
            help="how often such a part has been moved before it is mapped",
        ),
    ),
    counters=(
        Counter("bytes_read", "bytes that came from files, gaps included", unit="bytes"),
        Counter("bytes_written", "bytes that went to files, gaps included", unit="bytes"),
        Counter("calls", "system calls that moved bytes", unit="calls"),
        Counter("copies", "accesses that were copies to or from mapped pages", unit="accesses"),
        Counter("sieved", "windows that were read with their gaps", unit="windows"),
    ),
    capabilities={"locks": True},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    from ompy_fbtl_posix.module import Posix

    if context.file is None:
        return Refusal("bytes are moved for a file, and none was named")
    if context.file.descriptor < 0:
        return Refusal("the file system gives the file no descriptor")
    module = Posix(context.file, context.value("sieve_distance"), context.value("map_from"), context.value("map_after"))
    return Offer(modules=[module], priority=context.value("priority"))
