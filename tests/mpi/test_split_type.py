"""Communicators of processes that share hardware, or a process set (MPI-4.1, 7.4.2)."""

import os
from contextlib import contextmanager

import pytest

from ompy import MPI
from ompy.runtime import hardware
from ompy.runtime.topology import Topology

# Two packages of two cores of two threads.
HOST = {
    "package": ["0-3", "4-7"],
    "numa": ["0-3", "4-7"],
    "l3cache": ["0-3", "4-7"],
    "l2cache": ["0-1", "2-3", "4-5", "6-7"],
    "l1cache": ["0-1", "2-3", "4-5", "6-7"],
    "core": ["0-1", "2-3", "4-5", "6-7"],
    "hwthread": ["0", "1", "2", "3", "4", "5", "6", "7"],
}


@contextmanager
def bound(processors):
    """This process runs on a host of that kind, bound so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hardware, "whole_host", lambda usable: Topology.from_data(HOST))
        patch.setattr(os, "sched_getaffinity", lambda pid: set(processors))
        yield


def ranks_with_me(comm, split_type, info=None):
    part = comm.Split_type(split_type, comm.rank, info)
    if part == MPI.COMM_NULL:
        return None
    found = part.allgather(comm.rank)
    part.Free()
    return found


@pytest.mark.parametrize(
    ("processors", "smallest"),
    [([5], "hwloc://PU"), ([4, 5], "hwloc://Core"), ([5, 6], "hwloc://Package"), ([3, 4], "hwloc://Machine")],
)
def test_hardware_that_holds_all_of_a_process_is_told(processors, smallest):
    with bound(processors):
        told = dict(MPI.Get_hw_resource_info().items())
    assert list(told) == list(hardware.RESOURCES)
    inside = [name for name, value in told.items() if value == "true"]
    # A package of this host is one NUMA node and one L3 cache, a core one L2 cache and one L1 cache.
    names = list(hardware.RESOURCES)
    last = {"hwloc://Package": "hwloc://L3Cache"}.get(smallest, smallest)
    assert inside == names[: names.index(last) + 1]
    assert set(told.values()) <= {"true", "false"}


@pytest.mark.ompy(2)
def test_this_host_can_be_told(comm):
    told = dict(MPI.Get_hw_resource_info().items())
    assert told["hwloc://Machine"] == "true"
    if len(os.sched_getaffinity(0)) == 1:
        assert set(told.values()) == {"true"}
    assert ranks_with_me(comm, MPI.COMM_TYPE_HW_GUIDED, MPI.Info.Create({"mpi_hw_resource_type": "hwloc://Machine"})) == [0, 1]


@pytest.mark.ompy(4)
@pytest.mark.parametrize("split_type", [MPI.COMM_TYPE_HW_GUIDED, MPI.COMM_TYPE_RESOURCE_GUIDED])
@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("mpi_shared_memory", [[0, 1, 2, 3]] * 4),
        ("hwloc://Machine", [[0, 1, 2, 3]] * 4),
        ("hwloc://package", [[0, 1], [0, 1], [2], None]),
        ("numa", [[0, 1], [0, 1], [2], None]),
        ("hwloc://Core", [[0], [1], None, None]),
        ("hwloc://PU", [[0], None, None, None]),
        ("hwloc://Moon", [None] * 4),
    ],
)
def test_processes_in_one_piece_of_a_kind_of_hardware_are_together(comm, split_type, name, parts):
    with bound(([1], [2, 3], [4, 5, 6], [3, 4])[comm.rank]):
        assert ranks_with_me(comm, split_type, MPI.Info.Create({"mpi_hw_resource_type": name})) == parts[comm.rank]


@pytest.mark.ompy(4)
@pytest.mark.parametrize(
    ("places", "name", "parts"),
    [
        ([[0], [2], [4], [6]], "hwloc://Package", [[0, 1], [0, 1], [2, 3], [2, 3]]),
        ([[0], [2], [1], [3]], "hwloc://L2Cache", [[0, 2], [1, 3], [0, 2], [1, 3]]),
        ([[0], [0], [1], [1]], "hwloc://PU", [[0, 1], [0, 1], [2, 3], [2, 3]]),
        ([[0], [0, 1, 2, 3, 4], [0], [0]], "hwloc://Package", [[0, 2, 3], None, [0, 2, 3], [0, 2, 3]]),
        ([[0, 1, 2, 3]] * 4, None, [None] * 4),
    ],
)
def test_the_widest_hardware_that_parts_the_processes_is_found(comm, places, name, parts):
    info = MPI.Info.Create()
    with bound(places[comm.rank]):
        assert ranks_with_me(comm, MPI.COMM_TYPE_HW_UNGUIDED, info) == parts[comm.rank]
    assert info.Get("mpi_hw_resource_type") == name


@pytest.mark.ompy(3)
@pytest.mark.parametrize("split_type", [MPI.COMM_TYPE_HW_GUIDED, MPI.COMM_TYPE_HW_UNGUIDED])
def test_processes_go_on_without_one_that_can_t_look(comm, split_type):
    def fail():
        raise OSError(24, "no descriptor is left")

    info = MPI.Info.Create({"mpi_hw_resource_type": "hwloc://Package"})
    with bound([0]), pytest.MonkeyPatch.context() as patch:
        if comm.rank == 1:
            patch.setattr(hardware, "colors", fail)
            with pytest.raises(OSError, match="no descriptor is left"):
                comm.Split_type(split_type, 0, info)
        else:
            assert ranks_with_me(comm, split_type, info) == [0, 2]


@pytest.mark.ompy(4)
def test_both_groups_of_an_inter_communicator_are_split_alike(comm):
    half = comm.Split(comm.rank // 2, comm.rank)
    inter = half.Create_intercomm(0, comm, 2 - comm.rank // 2 * 2)
    with bound(([0], [0], [0], [4])[comm.rank]):
        part = inter.Split_type(MPI.COMM_TYPE_HW_UNGUIDED)
    # Rank 3 alone is in the other package, where the other group has nobody.
    if comm.rank == 3:
        assert part == MPI.COMM_NULL or part.remote_size == 0
    else:
        assert (part.size, part.remote_size) == ([2, 2, 1][comm.rank], [1, 1, 2][comm.rank])
    for some in (part, inter, half):
        if some != MPI.COMM_NULL:
            some.Free()


@pytest.mark.ompy(3)
@pytest.mark.parametrize(
    ("name", "parts"), [("mpi://WORLD", [[0, 1, 2]] * 3), ("mpi://SELF", [[0], [1], [2]]), ("mpi://NOWHERE", [None] * 3)]
)
def test_members_of_a_process_set_are_together(comm, name, parts):
    info = MPI.Info.Create({"mpi_pset_name": name})
    assert ranks_with_me(comm, MPI.COMM_TYPE_RESOURCE_GUIDED, info) == parts[comm.rank]
    assert ranks_with_me(comm, MPI.COMM_TYPE_HW_GUIDED, info) is None
