"""Elements of a dynamic window's memory that lie in several stretches of what is attached (MPI-4.1, 12.2.4)."""

from __future__ import annotations

import numpy as np
import pytest
from attaching import access_pieces, add_to_pieces, miss_pieces

from ompy import MPI
from ompy.mca import selection

ELSEWHERE = {"osc_rdma_native": "none", "osc": "rdma"}
WAYS = {
    "messages": {"osc": "pt2pt"},
    "kernel": {"osc_sm_patience": 0},
    "rdma": {"osc": "rdma"},
    "rdma by the kernel": {"osc": "rdma", "btl_sm_single_copy": "cma"},
    "rdma by messages": ELSEWHERE,
    "rdma by short messages": {**ELSEWHERE, "btl_sm_max_send_size": 256, "btl_sm_eager_limit": 256},
    "rdma over tcp": {"osc": "rdma", "btl": "tcp,self"},
    "rdma over portals": {"osc": "rdma", "pml": "ob1", "btl": "portals,self"},
    "portals": {"osc": "portals"},
    "portals over zmq": {"osc": "portals", "btl": "zmq,self"},
}


def in_the_heap(count):
    memory = np.frombuffer(MPI.Alloc_mem(max(8 * count, 1 << 15)), "i8")[:count]
    memory[:] = 0
    return memory


def anywhere(count):
    return np.zeros(count, "i8")


def reach_pieces(comm, component):
    for allocated in (anywhere, in_the_heap):
        access_pieces(comm, allocated)
    miss_pieces(comm)
    add_to_pieces(comm)
    assert next(it for it in selection.verdicts("osc") if it.chosen).component == component


@pytest.mark.ompy(1, 2)
def test_of_one_host(comm):
    reach_pieces(comm, "sm")


@pytest.mark.ompy(2, mca=WAYS["kernel"])
def test_by_the_kernel(comm):
    reach_pieces(comm, "sm")


@pytest.mark.ompy(1, 2, mca=WAYS["messages"])
def test_by_messages(comm):
    reach_pieces(comm, "pt2pt")


@pytest.mark.ompy(1, 2, mca=WAYS["rdma"])
def test_by_remote_access(comm):
    reach_pieces(comm, "rdma")


@pytest.mark.ompy(2, mca=WAYS["rdma by the kernel"])
def test_by_remote_access_and_the_kernel(comm):
    reach_pieces(comm, "rdma")


@pytest.mark.ompy(2, mca=WAYS["rdma by messages"])
def test_by_remote_access_over_messages(comm):
    reach_pieces(comm, "rdma")


@pytest.mark.ompy(2, mca=WAYS["rdma by short messages"])
def test_by_remote_access_over_short_messages(comm):
    reach_pieces(comm, "rdma")


@pytest.mark.ompy(2, mca=WAYS["rdma over tcp"])
def test_by_remote_access_over_tcp(comm):
    reach_pieces(comm, "rdma")


@pytest.mark.ompy(2, mca=WAYS["rdma over portals"])
def test_by_remote_access_over_portals(comm):
    reach_pieces(comm, "rdma")


@pytest.mark.ompy(1, 2, mca=WAYS["portals"])
def test_by_portals(comm):
    reach_pieces(comm, "portals")


@pytest.mark.ompy(2, mca=WAYS["portals over zmq"])
def test_by_portals_over_zmq(comm):
    reach_pieces(comm, "portals")
