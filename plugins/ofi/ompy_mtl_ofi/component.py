"""mtl/ofi: MPI's messages over libfabric."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Counter, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="mtl",
    name="ofi",
    version="0.1.0",
    interface="ompy_mtl_ofi.module",
    summary="messages matched by libfabric's providers: tcp, shm, verbs, efa, cxi",
    parameters=(
        Parameter("library", str, "libfabric.so.1", level=3, help="name or path of libfabric"),
        Parameter(
            "provider_include",
            str,
            "",
            level=1,
            help="providers of libfabric's that may be used, separated by commas; none: all",
        ),
        Parameter("provider_exclude", str, "sockets,udp", level=1, help="providers that are not used, separated by commas"),
        Parameter(
            "device", str, "", level=2, help="the one device (fi_info: domain) to use, such as lo, eth0 or mlx5_0; none: any"
        ),
        Parameter(
            "eager_limit",
            int,
            8192,
            unit="bytes",
            range=(0, 1 << 20),
            level=4,
            help="longer messages stay with their sender until received",
        ),
        Parameter(
            "piece_size",
            int,
            1 << 30,
            unit="bytes",
            range=(64, 1 << 40),
            level=5,
            help="of a long message that go in one operation of the provider, if it can carry as much",
        ),
        Parameter(
            "receives",
            int,
            0,
            unit="receives",
            range=(0, 1 << 30),
            level=6,
            help="that the provider matches at a time, the others are matched here; 0: half of what its queue holds",
        ),
    ),
    counters=(
        Counter("unexpected", "messages that were kept here before a receive wanted them", unit="messages"),
        Counter("pulled", "long messages asked for after the match", unit="messages"),
        Counter("stalled", "times that the provider had no room for what was sent", unit="times"),
        Counter("swept", "messages matched here rather than by the provider", unit="messages"),
    ),
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


def names(value: str) -> list[str]:
    return [name.strip() for name in value.split(",") if name.strip()]


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    if context.rte is None:
        return Refusal("no run-time environment tells it who its peers are")
    from ompy_mtl_ofi.endpoint import Library, Unavailable
    from ompy_mtl_ofi.engine import Engine
    from ompy_mtl_ofi.module import OfiMtl

    try:
        library = Library(context.value("library"))
    except Unavailable as error:
        return Refusal(f"libfabric can't be loaded: {error} (Debian: apt-get install libfabric1; elsewhere: mtl_ofi_library)")
    try:
        engine = Engine(
            library,
            context.rte.size,
            context.value("eager_limit"),
            context.value("piece_size"),
            context.value("receives"),
            elsewhere=not context.rte.is_on_one_host,
            only=names(context.value("provider_include")),
            never=names(context.value("provider_exclude")),
            device=context.value("device"),
        )
    except Unavailable as error:
        return Refusal(str(error))
    return Offer(modules=[OfiMtl(engine)], priority=10)
