"""coll/sm: collectives through shared memory, where all processes of a communicator are on one host."""

from __future__ import annotations

from ompy.core.clock import is_simulated
from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.core.communicator import Communicator
    from ompy_coll_sm.module import SmModule

SERVED = (
    "barrier", "bcast", "reduce", "allreduce", "reduce_scatter_block", "reduce_scatter", "scan", "exscan", "gather",
    "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw",
)  # fmt: skip

# Of one communicator, bytes.
MOST_MEMORY = 16 << 20

COMPONENT = Component(
    framework="coll",
    name="sm",
    version="0.1.0",
    interface="ompy_coll_sm.module",
    summary="blocking collectives through memory that the processes of one host share",
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
        Parameter(
            "chunk_size",
            int,
            262144,
            unit="bytes",
            range=(4096, 1 << 30),
            level=5,
            help="longest piece of a contribution; each process has room for two, less where there are more than 32",
        ),
        Parameter(
            "max_procs", int, 64, unit="processes", range=(1, 65536), level=5, help="larger communicators are left to others"
        ),
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
            "memory",
            int,
            512 << 20,
            unit="bytes",
            range=(0, 1 << 40),
            level=5,
            help="most that a process lends to the communicators of which it is rank 0, and which costs memory where it is "
            "used; when half is lent, pieces are small, and when all is lent, other components serve",
        ),
        Parameter("backing", str, "auto", level=7, choices=("auto", "memfd", "file"), help="where the shared memory lives"),
    ),
    capabilities={
        "algorithms": dict.fromkeys(SERVED, ("shared_memory",)),
        "forms": ("blocking",),
        "reach": "host",
        # What stands in its line; the other sizes at which something changes are powers of two.
        "switch_points": (40,),
    },
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


def chunk_for(size: int, asked: int) -> int:
    """Bytes of the longest piece of a contribution: of eight for each rank at least, and their lengths."""
    return max(min(asked, MOST_MEMORY // (2 * size)), 2 * 8 * size + 2 * 64)


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    communicator, rte = context.communicator, context.rte
    if communicator is None or rte is None:
        return Refusal("collectives are offered to a communicator, and none was named")
    if communicator.is_inter:
        return Refusal("it does not serve inter-communicators", lasting=True)
    if communicator.size < 2:
        return Refusal("there is nobody to share memory with", lasting=True)
    if is_simulated():
        reason = "time is simulated: through shared memory, collectives would pass by the simulated network"
        return Refusal(reason, lasting=True)
    if not communicator.shares_host(rte.local_size == rte.size):
        return Refusal("some ranks of the job are on other hosts", lasting=True)
    if communicator.size > context.value("max_procs"):
        reason = f"{communicator.size} processes are more than coll_sm_max_procs, {context.value('max_procs')}"
        return Refusal(reason, lasting=True)
    if not context.by_name and not context.admits("btl", "host"):
        # What was sent before a barrier would arrive long after it: who asks once then (`Win.Test`) would not see it.
        reason = (
            "by parameter btl no transport shares memory, and collectives would overtake messages; parameter coll can name it"
        )
        return Refusal(reason, lasting=True)
    from ompy_coll_sm.module import SmModule

    chunk = chunk_for(communicator.size, context.value("chunk_size"))
    spins, backing, memory = context.value("spins"), context.value("backing"), context.value("memory")
    crowded = rte.is_crowded

    def module(communicator: Communicator) -> SmModule:
        return SmModule(chunk, spins, crowded, backing, memory)

    return Offer([module(communicator)], context.value("priority"), functions=SERVED, again=module)
