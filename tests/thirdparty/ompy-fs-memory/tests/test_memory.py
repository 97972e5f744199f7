"""Files in memory: MPI over them, and the contracts."""

from __future__ import annotations

import array
import os

import pytest


@pytest.mark.parametrize("framework", ["fs", "fbtl"])
def test_it_keeps_the_contract(ompy_conformance, framework):
    ompy_conformance(framework, "memory", 2)


@pytest.mark.ompy(1, 3)
def test_ranks_write_and_read_one_file(comm):
    from ompy import MPI

    path = comm.bcast(f"memory:{os.getpid()}")
    file = MPI.File.Open(comm, path, MPI.MODE_RDWR | MPI.MODE_CREATE | MPI.MODE_DELETE_ON_CLOSE)
    own = MPI.INT.Create_hindexed([1], [4 * comm.rank]).Create_resized(0, 4 * comm.size).Commit()
    file.Set_view(0, MPI.INT, own)
    data, got = array.array("i", range(comm.rank, 1000 * comm.size, comm.size)), array.array("i", bytes(4000))
    file.Write_all(data)
    file.Read_at_all(0, got)
    assert got == data
    file.Set_view(0, MPI.INT)
    whole = array.array("i", bytes(4000 * comm.size))
    file.Read_at(0, whole)
    assert whole == array.array("i", range(1000 * comm.size))
    file.Write_ordered(array.array("i", [comm.rank]))
    assert file.Get_size() == 4000 * comm.size
    file.Close()


@pytest.mark.ompy(2, mca={"fs_memory_capacity": 1000})
def test_no_room_is_an_error_that_names_the_file(comm):
    from ompy import MPI

    path = comm.bcast(f"memory:{os.getpid()}")
    file = MPI.File.Open(comm, path, MPI.MODE_RDWR | MPI.MODE_CREATE | MPI.MODE_DELETE_ON_CLOSE)
    with pytest.raises(MPI.Exception, match=path) as caught:
        file.Write_at(990, bytes(20))
    assert caught.value.Get_error_class() == MPI.ERR_NO_SPACE
    file.Close()
