"""btl/sm: shared memory between processes of one user on one host."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Counter, Offer, Parameter, Refusal, hookimpl
from ompy.mca.errors import ParameterError
from ompy.mca.params import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy_btl_sm.module import SmBtl

COMPONENT = Component(
    framework="btl",
    name="sm",
    version="0.1.0",
    interface="ompy_btl_sm.module",
    summary="shared memory: one ring for each direction between two processes, large messages copied once by the kernel",
    parameters=(
        # 64 KiB and a header: powers of two are what programs send.
        Parameter(
            "eager_limit",
            int,
            65600,
            unit="bytes",
            range=(256, 1 << 30),
            level=4,
            help="largest message sent before it is matched",
        ),
        Parameter(
            "rndv_eager_limit",
            int,
            8192,
            unit="bytes",
            range=(0, 1 << 30),
            level=5,
            help="payload that travels with a rendezvous",
        ),
        Parameter("max_send_size", int, 65600, unit="bytes", range=(256, 1 << 30), level=4, help="largest single fragment"),
        Parameter(
            "min_rdma_pipeline_size",
            int,
            65536,
            unit="bytes",
            range=(0, 1 << 40),
            level=5,
            help="smallest message that its receiver reads in place, where it can, though it may be sent before it is matched",
        ),
        Parameter(
            "ring_size",
            int,
            0,
            unit="bytes",
            range=(4096, 1 << 30),
            also=(0,),
            level=4,
            help="memory for each direction between two processes; 0: by the number of ranks on the host, at most 256 KiB",
        ),
        Parameter(
            "backing",
            str,
            "auto",
            level=4,
            choices=("auto", "memfd", "file"),
            help="shared memory: memfd leaves nothing behind, file lives in /dev/shm, auto takes memfd if it can",
        ),
        Parameter(
            "single_copy",
            str,
            "auto",
            level=4,
            choices=("auto", "cma", "none"),
            help="large messages: copied once by the kernel (cma), twice through the ring (none), or auto: as a short "
            "probe at start finds quicker; where ranks outnumber cores the kernel may take longer for it",
        ),
        Parameter(
            "ring_copy",
            str,
            "auto",
            level=4,
            choices=("auto", "cached", "streaming"),
            help="payloads of at least 32 KiB are written into the ring by ordinary stores (cached), past the caches by "
            "non-temporal ones (streaming), or auto: as is found quicker on the way, again and again",
        ),
        Parameter(
            "shared_heap",
            str,
            "auto",
            level=4,
            choices=("auto", "none"),
            help="memory of MPI.Alloc_mem and Win.Allocate (and NumPy arrays, see mpi_numpy_heap) lies where peers map it, and "
            "large messages from there are copied once, without the kernel; none: it is ordinary memory",
        ),
        Parameter(
            "joint_copy",
            int,
            -1,
            unit="bytes",
            range=(0, 1 << 40),
            also=(-1,),
            level=5,
            help="sender and receiver both copy, a piece at a time, messages of at least so many bytes that need one copy; "
            "0: only the receiver does, -1: 64 KiB where every rank has a core",
        ),
        Parameter(
            "inbox_slots",
            int,
            0,
            unit="rings",
            range=(1, 65536),
            also=(0,),
            level=7,
            help="rings that can be announced at a time; 0: by the number of ranks",
        ),
        Parameter(
            "exclusivity",
            int,
            65535,
            unit="points",
            range=(0, 1000000),
            level=7,
            help="of the BTLs that reach a peer, only the highest are used",
        ),
        Parameter(
            "latency", int, 200, unit="ns", range=(0, 10**9), level=6, help="what the BML takes this BTL's latency to be"
        ),
        Parameter(
            "bandwidth",
            int,
            10000,
            unit="MB/s",
            range=(1, 10**9),
            level=6,
            help="what the BML takes this BTL's bandwidth to be",
        ),
    ),
    capabilities={
        "send": True,
        "put": "cma",
        "get": "cma or heap",
        "atomics": "heap",
        "in_order": True,
        "asynchronous_progress": True,
        "reach": "host",
    },
    counters=(
        Counter("messages_sent", "messages put into peers' rings", unit="messages"),
        Counter("bytes_sent", "bytes put into peers' rings, headers included", unit="bytes"),
        Counter("messages_received", "messages taken out of our rings", unit="messages"),
        Counter("bytes_received", "bytes taken out of our rings", unit="bytes"),
        Counter("ring_full", "times that a ring had no room", unit="times"),
        Counter("bytes_copied_by_kernel", "bytes read or written in peers' memory", unit="bytes"),
        Counter("bytes_copied_in_heap", "bytes read or written in peers' shared heaps", unit="bytes"),
        Counter("pieces_copied_for_peers", "pieces of our messages that we copied for their receivers", unit="pieces"),
        Counter("bytes_streamed", "bytes written into rings past the caches", unit="bytes"),
        Counter("streams_out", "peers whose rings are written past the caches", unit="peers", kind="level"),
        Counter("rings_out", "peers that we have a ring towards", unit="rings", kind="level"),
        Counter("rings_in", "peers that have a ring towards us", unit="rings", kind="level"),
    ),
)
CUT_BY_RING = ("eager_limit", "rndv_eager_limit", "max_send_size")
LIMITS = (*CUT_BY_RING, "min_rdma_pipeline_size", "exclusivity", "latency", "bandwidth")

# Below this, one side is done before the other has noticed.
JOINT_SIZE = 64 << 10
# Bytes of rings that a process makes when it talks to every other rank of a large host.
BUDGET = 4 << 20
SMALLEST_RING, LARGEST_RING = 32 << 10, 256 << 10


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    local_size = context.rte.local_size if context.rte else 1
    ring_size = context.value("ring_size") or usual_ring_size(local_size)
    limits = {name: context.value(name) for name in LIMITS}
    for name in CUT_BY_RING:
        if 2 * limits[name] > ring_size:
            if registry.lookup(f"btl_sm_{name}").source != "default":
                raise ParameterError(
                    f"parameter btl_sm_{name}: {limits[name]} bytes are more than half of btl_sm_ring_size, {ring_size}"
                )
            limits[name] = ring_size // 2
    from ompy.core.errors import MPIError
    from ompy.core.segment import belong_to
    from ompy_btl_sm.module import SmBtl

    kernel_copies = single_copy(context)
    if kernel_copies and is_crowded(context) and registry.lookup("btl_sm_min_rdma_pipeline_size").source == "default":
        # A message that can go eagerly waits for no answer, which takes a turn of the core.
        limits["min_rdma_pipeline_size"] = max(limits["min_rdma_pipeline_size"], limits["eager_limit"] + 1)
    if context.rte:
        belong_to(context.rte.job)
    slots = context.value("inbox_slots") or max(64, 2 * local_size)
    heap = own_heap(context, local_size)
    joint_size = context.value("joint_copy")
    if joint_size < 0:
        joint_size = 0 if is_crowded(context) else JOINT_SIZE
    try:
        btl = SmBtl(ring_size, context.value("backing"), slots, kernel_copies, heap, joint_size, context.value("ring_copy"))
        short = btl.in_files and reserve(btl, local_size)
    except MPIError as error:
        context.inform(f"{error}; other transports serve", private=True)
        return Refusal(str(error))
    if short:
        btl.finalize()
        context.inform(f"{short}; other transports serve")
        return Refusal(short)
    for name, limit in limits.items():
        setattr(btl, name, limit)
    if registry.value("btl_base_verbose") >= 1:
        context.inform(choices(kernel_copies, heap is not None, joint_size))
        btl.on_choice = context.inform
    btl.on_lack = lambda line: context.inform(line, private=True)
    btl.on_fallback = lambda line: context.inform(f"{line}; large messages go through the ring")
    # In files, a peer may have found no room for its rings.
    return Offer(modules=[btl], certain=not btl.in_files)


def reserve(btl: SmBtl, local_size: int) -> str:
    """Set room aside for the rings to every other rank of the host; returns why the host's ranks can't all have theirs.

    Raises MPIError when this process alone can't.
    """
    from ompy_btl_sm.reservation import Reservation, shortage

    rings = (local_size - 1) * btl.ring_bytes
    short = shortage(local_size * rings)
    if not short and rings:
        btl.reservation = Reservation(rings)
    return short


def usual_ring_size(local_size: int) -> int:
    """A power of two: 256 KiB for up to 16 ranks on the host, less for more."""
    size = LARGEST_RING
    while size > SMALLEST_RING and size * local_size > BUDGET:
        size //= 2
    return size


def choices(kernel_copies: bool, has_heap: bool, joint_size: int) -> str:
    """How large messages will go, in a line for people."""
    way = "copied once by the kernel" if kernel_copies else "copied twice, through the ring"
    shared = "; from the shared heap once, without the kernel" if has_heap else "; there is no shared heap"
    joint = f"; sender and receiver share copies from {joint_size} bytes on" if joint_size else "; the receiver copies alone"
    return f"large messages are {way}{shared}{joint}"


def own_heap(context: Context, local_size: int) -> tuple[bytes, int, int] | None:
    """This process's shared heap, where there are peers for it and the kernel lets them at what lies outside too."""
    from ompy.core.reach import refusal

    if context.value("shared_heap") == "none" or context.value("backing") == "file" or local_size < 2 or refusal():
        return None
    from ompy.core.heap import open_heap

    return open_heap()


def single_copy(context: Context) -> bool:
    """Whether large messages are to be copied by the kernel."""
    choice = context.value("single_copy")
    if choice == "none":
        return False
    from ompy.core.reach import pays, refusal

    reason = refusal()
    if reason:
        context.inform(f"{reason}; large messages go through the ring")
        return False
    return choice == "cma" or pays(is_crowded(context))


def is_crowded(context: Context) -> bool:
    """Whether ranks outnumber cores on this host."""
    return context.rte is not None and context.rte.is_crowded
