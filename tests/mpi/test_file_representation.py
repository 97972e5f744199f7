"""Data representations of files: external32, and the program's own (MPI-4.1, 14.5)."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from file_calls import path_of

from ompy import MPI

READ_WRITE = MPI.MODE_RDWR | MPI.MODE_CREATE


def contents(path):
    with open(path, "rb") as source:
        return source.read()


@pytest.mark.ompy(1)
def test_structures_are_laid_out_by_every_representation(comm, tmp_path):
    MPI.Register_datarep("structures as they are", None, None, lambda datatype: datatype.size)
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE)
    pair = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.INT, MPI.DOUBLE]).Commit()
    data = np.array([(1, 2.0), (-3, 4.5)], np.dtype([("index", "i4"), ("value", "f8")], align=True))
    for name, form in (("external32", ">i4xd"), ("structures as they are", "=i4xd")):
        file.Set_view(0, pair, pair, name)
        assert file.Get_type_extent(pair) == 16
        got = np.zeros_like(data)
        file.Write_at(0, [data, 2, pair])
        assert [struct.unpack_from(form, contents(path), place) for place in (0, 16)] == [(1, 2.0), (-3, 4.5)]
        file.Read_at(0, [got, 2, pair])
        assert (got == data).all()
    file.Close()


@pytest.mark.ompy(1)
@pytest.mark.parametrize(
    ("name", "form", "value"),
    [("DOUBLE_INT", "di", "f8"), ("SHORT_INT", "hi", "i2"), ("LONG_INT", "ii", "i8"), ("FLOAT_INT", "fi", "f4")],
)
def test_pairs_have_no_gaps_in_external32(comm, tmp_path, name, form, value):
    kind = getattr(MPI, name)
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE)
    every_second = kind.Create_vector(2, 1, 2).Commit()
    pairs = [(1, 2), (-3, 4), (5, -6)]
    data = np.array(pairs, np.dtype([("value", value), ("index", "i4")], align=True))
    nbytes = struct.calcsize(f">{form}")
    for filetype, places in ((kind, (0, 1, 2)), (every_second, (0, 2, 3))):
        file.Set_view(0, kind, filetype, "external32")
        assert file.Get_type_extent(kind) == nbytes
        file.Set_size(0)
        file.Write_at(0, [data, 3, kind])
        assert len(contents(path)) == (places[-1] + 1) * nbytes
        assert [struct.unpack_from(f">{form}", contents(path), place * nbytes) for place in places] == pairs
        got = np.zeros_like(data)
        file.Read_at(0, [got, 3, kind])
        assert got.tolist() == pairs
    file.Close()


@pytest.mark.ompy(1)
def test_a_representation_fills_in_as_many_bytes_as_it_has_said(comm, tmp_path):
    def write_less(memory, datatype, count, data, position):
        data[:] = bytes(8)

    def write_more(memory, datatype, count, data, position):
        data += bytes(4000)

    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE)
    for write in (write_less, write_more):
        MPI.Register_datarep(write.__name__, None, write, lambda datatype: datatype.size)
        file.Set_view(0, MPI.INT, MPI.INT, write.__name__)
        with pytest.raises((TypeError, ValueError)):
            file.Write_at(0, np.arange(10, dtype="i4"))
        assert file.Get_size() == 0
    file.Close()


@pytest.mark.ompy(1)
def test_a_representation_s_functions_can_t_close_the_file(comm, tmp_path):
    handles = []

    def close(*_):
        handles[0].Close()

    MPI.Register_datarep("closing", close, close, lambda datatype: datatype.size)
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    handles.append(file)
    file.Write_at(0, np.arange(10, dtype="i4"))
    file.Set_view(0, MPI.INT, MPI.INT, "closing")
    reads = (file.Read_at, file.Read_at_all, lambda *arguments: file.Iread_at(*arguments).Wait())
    for call in (file.Write_at, file.Write_at_all, file.Iwrite_at, *reads):
        with pytest.raises(MPI.Exception, match="under way") as caught:
            call(0, np.arange(10, dtype="i4"))
        assert caught.value.Get_error_class() == MPI.ERR_FILE
    file.Close()
