"""Everything that programs are to run over: each transport and mechanism, each PML, each component of coll and osc."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One configuration.

    Attributes:
        name: of it.
        mca: parameters.
        ranks: numbers of ranks.
        without: features that its components declare not to have.
        share: of the operations of the whole.
    """

    name: str
    mca: tuple[tuple[str, str], ...]
    ranks: tuple[int, ...]
    without: tuple[str, ...] = ()
    share: float = 1.0


def mca(**parameters: object) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in parameters.items())


NO_HEAP = {"btl_sm_shared_heap": "none"}
RING = {"btl": "sm,self", "btl_sm_single_copy": "none", "mpi_partition_size": 1, **NO_HEAP}
KERNEL = {"btl": "sm,self", "btl_sm_single_copy": "cma", **NO_HEAP, "btl_sm_min_rdma_pipeline_size": 1}
HEAP = {"btl": "sm,self", "btl_sm_single_copy": "none", "mpi_numpy_heap": 4096, "btl_sm_min_rdma_pipeline_size": 1}
CHAOS = {
    f"btl_chaos_{what}": share for what, share in {"drop": 0.01, "duplicate": 0.01, "corrupt": 0.001, "delay": 0.05}.items()
}
LEVELLED = ("barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall")
TWO_LEVELS = {
    **{f"coll_han_{function}_algorithm": "two_level" for function in LEVELLED},
    "coll_han_first_calls": 1,
    "coll_han_priority": 50,
    "coll_han_allreduce_segmentsize": 8192,
}
SIMULATED = ("threads", "signals", "fork", "floods")

MATRIX = (
    Row("default", (), (1, 2, 3, 4, 5, 6, 7), share=4),
    Row("sm ring", mca(**RING, btl_sm_ring_copy="cached"), (2, 3)),
    Row("sm streaming", mca(**RING, btl_sm_ring_copy="streaming"), (2, 5)),
    Row("sm fragments", mca(**RING, btl_sm_ring_copy="auto", btl_sm_eager_limit=1024, btl_sm_rndv_eager_limit=512), (2, 3)),
    Row("sm kernel", mca(**KERNEL, btl_sm_joint_copy=0), (2, 3)),
    Row("sm kernel-joint", mca(**KERNEL, btl_sm_joint_copy=4096), (2, 4)),
    Row("sm kernel-puts", mca(**KERNEL, pml_ob1_use_get=0, btl_sm_eager_limit=4096), (2, 3)),
    Row("sm heap", mca(**HEAP, btl_sm_joint_copy=0), (2, 3)),
    Row("sm heap-joint", mca(**HEAP, btl_sm_joint_copy=4096), (2, 3)),
    Row("sm files", mca(btl="sm,self", btl_sm_backing="file", coll_sm_backing="file"), (3,)),
    Row("tcp", mca(btl="tcp,self"), (2, 3, 5), share=2),
    Row(
        "tcp fragments", mca(btl="tcp,self", btl_tcp_eager_limit=1024, btl_tcp_rndv_eager_limit=512, pml_ob1_use_put=0), (2, 3)
    ),
    Row("tcp encrypted", mca(btl="tcp,self", btl_tcp_security="tls"), (2, 3)),
    Row("tcp small buffers", mca(btl="tcp,self", btl_tcp_sndbuf=4096, btl_tcp_rcvbuf=4096, btl_tcp_send_queue=8192), (2, 3)),
    Row("zmq", mca(btl="zmq,self"), (2, 3, 5), share=2),
    Row("coll basic", mca(coll="basic"), (2, 3, 5, 7)),
    Row("coll tuned", mca(coll="tuned,basic"), (2, 3, 5, 7)),
    Row("coll sm", mca(coll="sm,basic"), (2, 3, 5, 7)),
    Row("coll han", mca(**TWO_LEVELS, coll_han_pretended_hosts="0,0,1,1,2"), (3, 5, 7)),
    Row("coll han in turn", mca(**TWO_LEVELS, coll_han_pretended_hosts="0,1"), (3, 5)),
    Row("osc pt2pt", mca(osc="pt2pt"), (2, 3, 5), share=2),
    Row("osc sm", mca(osc="sm,pt2pt"), (2, 3, 5), share=2),
    Row("osc rdma", mca(osc="rdma,pt2pt", osc_rdma_priority=50, btl_sm_single_copy="cma"), (2, 3, 5), share=2),
    Row("osc rdma over messages", mca(osc="rdma,pt2pt", osc_rdma_priority=50, osc_rdma_native="none"), (2, 3, 5)),
    Row("osc rdma over zmq", mca(osc="rdma,pt2pt", osc_rdma_priority=50, btl="zmq,self"), (2, 3)),
    Row("osc rdma over portals", mca(osc="rdma,pt2pt", osc_rdma_priority=50, pml="ob1", btl="portals,self"), (2, 3), share=0.3),
    Row("osc portals", mca(osc="portals"), (2, 3), share=0.3),
    Row("osc portals beside mtl", mca(osc="portals", pml="cm", mtl="portals"), (2, 3), share=0.3),
    Row("async progress", mca(mpi_async_progress=1, osc="pt2pt"), (2, 3)),
    Row("async progress over zmq", mca(mpi_async_progress=1, btl="zmq,self"), (2, 3)),
    Row("checksums", mca(btl="zmq,self", pml_ob1_checksum=1), (2,)),
    Row("dr over chaos around sm", mca(pml="dr", btl="chaos,self", btl_chaos_wraps="sm", **CHAOS), (2, 3), share=0.3),
    Row("dr over chaos around zmq", mca(pml="dr", btl="chaos,self", btl_chaos_wraps="zmq", **CHAOS), (2, 3), share=0.3),
    Row("portals below ob1", mca(pml="ob1", btl="portals,self"), (2, 3), share=0.3),
    Row("portals below cm", mca(pml="cm", mtl="portals"), (2, 3), share=0.3),
    Row("coll portals", mca(pml="cm", mtl="portals", coll="portals,basic"), (2, 3), share=0.3),
    Row("gdn", mca(pml="ob1", btl="gdn,self"), (2, 4), SIMULATED, share=0.1),
    # Two that write to each other more than the chip's buffers hold wait for the watchdog in version I.
    Row("rpi v1", mca(pml="rpi", rpi="raw_v1", machine_raw_watchdog=1000, machine_raw_patience=1), (2,), SIMULATED, share=0.1),
    Row("rpi v2", mca(pml="rpi", rpi="raw_v2"), (2,), SIMULATED, share=0.1),
    Row("rpi v3", mca(pml="rpi", rpi="raw_v3"), (2, 4), SIMULATED, share=0.1),
)
