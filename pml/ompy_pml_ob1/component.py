"""pml/ob1: MPI's matching in software, over byte transports."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Counter, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="pml",
    name="ob1",
    version="0.1.0",
    interface="ompy_pml_ob1.module",
    summary="software matching over any BTLs: eager, get, put and fragment protocols",
    parameters=(
        Parameter(
            "send_pipeline_depth",
            int,
            4,
            unit="fragments",
            range=(1, 4096),
            level=5,
            help="fragments of one message under way on one route",
        ),
        Parameter(
            "rdma_pipeline_depth",
            int,
            4,
            unit="transfers",
            range=(1, 4096),
            level=5,
            help="reads or writes of one message under way",
        ),
        Parameter("use_get", bool, True, level=5, help="let receivers read senders' memory where a BTL can get"),
        Parameter(
            "checksum", bool, False, level=3, help="check messages on arrival: what is damaged, missing or repeated is an error"
        ),
        Parameter("use_put", bool, True, level=5, help="let senders write receivers' memory where a BTL can put"),
    ),
    counters=(
        Counter("messages_matched", "messages whose receive was posted when they came", unit="messages"),
        Counter("messages_kept", "messages that came before their receive was posted", unit="messages"),
        Counter("sends_held_back", "times that a BTL had no room and something had to be tried again", unit="times"),
    ),
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    modules = context.chosen("bml")
    if not modules:
        return Refusal("ob1 needs a bml, and none was chosen")
    from ompy_pml_ob1.module import Ob1

    values = {parameter.name: context.value(parameter.name) for parameter in COMPONENT.parameters}
    if values["checksum"] and context.rte:
        from ompy_pml_ob1.checked import CheckedBtl

        rte = context.rte
        modules[0].wrap(lambda btl: CheckedBtl(btl, rte.job, rte.rank, rte.size))
    return Offer(modules=[Ob1(modules[0], name=context.opener or COMPONENT.name, **values)], priority=20)
