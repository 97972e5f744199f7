"""Datatypes under mpi4py's names: constructors, what they were made of, packing, external32, codes, handles."""

import pickle
import struct

import numpy as np
import pytest

from ompy import MPI

PREDEFINED = sorted({name for name in dir(MPI) if isinstance(getattr(MPI, name), MPI.Datatype)} - {"DATATYPE_NULL"})


def rebuilt(datatype):
    base, constructor, arguments = datatype.decode()
    return getattr(base, f"Create_{constructor.lower()}")(**arguments)


def derived_types():
    column = MPI.DOUBLE.Create_vector(3, 1, 4)
    return [
        MPI.INT.Dup(),
        MPI.INT.Create_contiguous(3),
        column,
        column.Create_hvector(2, 1, 8),
        MPI.SHORT.Create_indexed([2, 0, 1], [5, 1, 0]),
        column.Create_hindexed([1, 2], [3, 200]),
        MPI.CHAR.Create_indexed_block(2, [0, 3, 7]),
        MPI.CHAR.Create_hindexed_block(2, [0, 3, 7]),
        MPI.Datatype.Create_struct([1, 2], [0, 8], [MPI.INT, column]),
        MPI.INT.Create_subarray([4, 5], [2, 3], [1, 2], MPI.ORDER_F),
        MPI.INT.Create_darray(4, 3, [8, 9], [MPI.DISTRIBUTE_CYCLIC, MPI.DISTRIBUTE_BLOCK], [2, -1], [2, 2]),
        column.Create_resized(-8, 8),
    ]


@pytest.mark.parametrize("datatype", derived_types(), ids=lambda datatype: datatype.decode()[1])
def test_decoded_arguments_make_the_same_type_again(datatype):
    for other in (rebuilt(datatype), pickle.loads(pickle.dumps(datatype))):
        assert other != datatype
        assert other.envelope == datatype.envelope
        assert other.contents[:3] == datatype.contents[:3]
        assert (other.size, other.Get_extent(), other.Get_true_extent()) == (
            datatype.size,
            datatype.Get_extent(),
            datatype.Get_true_extent(),
        )


def test_envelope_counts_what_contents_lists():
    for datatype in derived_types():
        *numbers, combiner = datatype.Get_envelope()
        assert numbers == [len(part) for part in datatype.Get_contents()]
        assert combiner == datatype.combiner != MPI.COMBINER_NAMED


def test_freeing_what_contents_gave_leaves_the_original():
    column = MPI.INT.Create_vector(2, 1, 3)
    pair = column.Create_contiguous(2)
    base = pair.Get_contents()[3][0]
    assert base == column
    base.Free()
    assert not base
    assert column.size == 8
    column.Free()
    assert pair.size == 16


@pytest.mark.parametrize("name", PREDEFINED)
def test_predefined_types_are_named_and_cannot_be_freed(name):
    datatype = getattr(MPI, name)
    assert datatype.Get_name().startswith("MPI_")
    assert datatype.is_predefined
    assert datatype.is_named
    assert datatype.decode() == (datatype, "NAMED", {})
    assert pickle.loads(pickle.dumps(datatype)) is datatype
    with pytest.raises(MPI.Exception, match="can't be freed"):
        datatype.Free()
    with pytest.raises(MPI.Exception, match="made by no constructor"):
        datatype.Get_contents()


def test_codes_agree_with_numpy():
    for code in "?bhilqBHILQefdgFDG":
        datatype = MPI.Datatype.fromcode(code)
        assert datatype.extent == np.dtype(code).itemsize
        assert datatype.typechar == code
        assert np.dtype(datatype.typestr) == np.dtype(code)
        assert datatype.Dup().tocode() == datatype.tocode()
    assert MPI.Datatype.fromcode("f8") == MPI.DOUBLE
    assert MPI.INT32_T.tocode() == "i4"
    assert MPI.DOUBLE_INT.typestr == "V16"
    with pytest.raises(ValueError, match="no predefined datatype"):
        MPI.Datatype.fromcode("nonsense")
    with pytest.raises(ValueError, match="MPI_DOUBLE_INT has no character code"):
        MPI.DOUBLE_INT.tocode()


def test_null_is_refused_by_name():
    assert MPI.DATATYPE_NULL.Get_name() == "MPI_DATATYPE_NULL"
    assert MPI.DATATYPE_NULL.typestr == MPI.DATATYPE_NULL.typechar == ""
    for call in (MPI.DATATYPE_NULL.Get_size, MPI.DATATYPE_NULL.Commit, MPI.DATATYPE_NULL.Dup):
        with pytest.raises(MPI.Exception, match="not DATATYPE_NULL") as caught:
            call()
        assert caught.value.Get_error_class() == MPI.ERR_TYPE


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: MPI.INT.Create_contiguous(-1), MPI.Exception, "count: -1 is negative"),
        (lambda: MPI.INT.Create_contiguous(1.5), TypeError, "count: an integer expected, not float"),
        (lambda: MPI.INT.Create_indexed_block(1, ["a"]), TypeError, "displacements: a sequence of integers"),
        (lambda: MPI.Datatype.Create_struct([1], [0], ["i"]), TypeError, "datatypes: a Datatype expected, not str"),
        (lambda: MPI.INT.Create_vector(1 << 40, 1, 1 << 40), MPI.Exception, "farther than an address"),
        (lambda: MPI.INT.Create_vector(2, 1, 1 << 62), MPI.Exception, "farther than an address"),
        (lambda: MPI.INT.Pack_size(-1, MPI.COMM_SELF), MPI.Exception, "count: -1 is negative"),
        (lambda: MPI.INT.Create_indexed([1, 2], [0]), ValueError, "displacements: 2 items expected, not 1"),
        (lambda: MPI.Datatype.Create_struct([1], [0], [MPI.INT, MPI.INT]), ValueError, "datatypes: 1 items"),
        (lambda: MPI.INT.Create_subarray([4], [5], [0]), MPI.Exception, "do not lie in a dimension of 4"),
        (lambda: MPI.INT.Create_subarray([4], [4], [0], 7), MPI.Exception, "order: ORDER_C or ORDER_FORTRAN"),
        (lambda: MPI.INT.Create_darray(2, 5, [4], [0], [-1], [2]), MPI.Exception, "rank 5"),
        (lambda: MPI.Datatype.Match_size(MPI.TYPECLASS_REAL, 3), MPI.Exception, "no type of 3 bytes"),
        (lambda: MPI.Datatype.Create_f90_integer(99), MPI.Exception, "99 decimal digits"),
        (lambda: MPI.INT.Pack_external_size("native", 1), MPI.Exception, "'external32' expected"),
        (lambda: MPI.INT.Pack(bytes(8), bytearray(7), 0, MPI.COMM_SELF), MPI.Exception, "8 bytes from position 0"),
        (lambda: MPI.INT.Pack(bytes(8), bytearray(9), 2, MPI.COMM_SELF), MPI.Exception, "8 bytes from position 2"),
        (lambda: MPI.INT.Pack(bytes(8), bytearray(9), -1, MPI.COMM_SELF), MPI.Exception, "position: -1"),
        (lambda: MPI.INT.Pack(bytes(8), bytes(9), 0, MPI.COMM_SELF), BufferError, "writable"),
        (lambda: MPI.INT.Pack(bytes(8), bytearray(9), 0, MPI.COMM_NULL), MPI.Exception, "COMM_NULL"),
        (
            lambda: MPI.INT.Create_resized(0, 0).Commit().Pack(b"", bytearray(9), 0, MPI.COMM_SELF),
            ValueError,
            "extent of 0 bytes",
        ),
        (lambda: MPI.INT.Unpack(bytes(7), 0, bytearray(8), MPI.COMM_SELF), MPI.Exception, "8 bytes from position 0"),
    ],
)
def test_bad_arguments_are_named(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_columns_pack_and_unpack():
    matrix = np.arange(20.0).reshape(4, 5)
    column = MPI.DOUBLE.Create_vector(4, 1, 5).Create_resized(0, 160).Commit()
    packed = bytearray(column.Pack_size(1, MPI.COMM_SELF) + 3)
    assert column.Pack(matrix, packed, 3, MPI.COMM_SELF) == 35
    assert np.frombuffer(packed, "d", 4, 3).tolist() == [0, 5, 10, 15]
    target = np.zeros((4, 5))
    assert column.Unpack(packed, 3, target, MPI.COMM_SELF) == 35
    assert target[:, 0].tolist() == [0, 5, 10, 15]
    assert not target[:, 1:].any()


def test_external32_is_big_endian_with_sizes_of_its_own():
    record = np.dtype([("a", "i4"), ("b", "i8"), ("c", "f8"), ("d", "i2")], align=True)
    datatype = MPI.Datatype.Create_struct(
        [1, 1, 1, 1], [record.fields[name][1] for name in "abcd"], [MPI.INT, MPI.LONG, MPI.DOUBLE, MPI.SHORT]
    )
    with pytest.raises(MPI.Exception, match="not committed"):
        datatype.Pack_external("external32", bytes(datatype.extent), bytearray(22), 0)
    datatype.Commit()
    assert datatype.extent == record.itemsize
    data = np.array([(1, -2, 0.5, -3), (4, 5, -6.25, 7)], record)
    size = datatype.Pack_external_size("external32", 2)
    packed = bytearray(size)
    assert datatype.Pack_external("external32", data, packed, 0) == size
    assert bytes(packed) == struct.pack(">iidhiidh", 1, -2, 0.5, -3, 4, 5, -6.25, 7)
    back = np.zeros_like(data)
    assert datatype.Unpack_external("external32", packed, 0, back) == size
    assert back.tolist() == data.tolist()


def test_external32_long_double_is_binary128():
    data = np.array([1.5, -0.25], "g")
    packed = bytearray(32)
    MPI.LONG_DOUBLE.Pack_external("external32", data, packed, 0)
    assert packed.hex() == "3fff8" + "0" * 27 + "bffd" + "0" * 28
    back = np.zeros_like(data)
    MPI.LONG_DOUBLE.Unpack_external("external32", packed, 0, back)
    assert back.tolist() == data.tolist()


def test_external32_refuses_what_it_cannot_hold():
    with pytest.raises(MPI.Exception, match=f"{1 << 40} does not fit in the 4 bytes") as caught:
        MPI.LONG.Pack_external("external32", np.array([1 << 40]), bytearray(8), 0)
    assert caught.value.Get_error_class() == MPI.ERR_CONVERSION


def test_fortran_kinds():
    assert [MPI.Datatype.Create_f90_integer(r).size for r in (1, 4, 9, 10, 30)] == [1, 2, 4, 8, 16]
    assert [MPI.Datatype.Create_f90_real(p, r).size for p, r in ((6, 37), (6, 38), (15, 307), (30, 10))] == [4, 8, 8, 16]
    assert MPI.Datatype.Create_f90_complex(7, MPI.UNDEFINED).size == 16
    same = MPI.Datatype.Create_f90_real(15, 300)
    assert same == MPI.Datatype.Create_f90_real(15, 300) != MPI.DOUBLE
    assert same.is_predefined
    assert not same.is_named
    assert MPI.Datatype.Match_size(MPI.TYPECLASS_COMPLEX, 16) == MPI.COMPLEX16


def test_pairs_by_value_and_index():
    assert MPI.Datatype.Get_value_index(MPI.DOUBLE, MPI.INT) == MPI.DOUBLE_INT
    assert MPI.Datatype.Get_value_index(MPI.INT, MPI.DOUBLE) == MPI.DATATYPE_NULL


def test_attributes_follow_their_keys():
    deleted = []
    kept = MPI.Datatype.Create_keyval(lambda _type, _key, value: value + 1, lambda _type, _key, value: deleted.append(value))
    left = MPI.Datatype.Create_keyval()
    original = MPI.INT.Dup()
    original.Set_attr(kept, 10)
    original.Set_attr(left, 20)
    copy = original.Dup()
    assert (copy.Get_attr(kept), copy.Get_attr(left)) == (11, None)
    original.Free()
    assert deleted == [10]
    copy.Delete_attr(kept)
    assert deleted == [10, 11]
    copy.Free()
    assert MPI.Datatype.Free_keyval(kept) == MPI.Datatype.Free_keyval(left) == MPI.KEYVAL_INVALID


def test_handles_share_the_type_and_subclasses_stay():
    class MyType(MPI.Datatype):
        pass

    mine = MyType(MPI.INT).Create_contiguous(2)
    assert type(mine) is MyType
    other = MPI.Datatype(mine)
    other.name = "pairs"
    assert other == mine
    assert mine.name == "pairs"
    assert MPI.Datatype.fromhandle(mine.handle) == mine
    assert MPI.Datatype.f2py(mine.py2f()) == mine
    mine.free()
    assert not mine
    assert other.size == 8


def test_addresses():
    data = np.arange(4)
    assert MPI.Get_address(data) == data.ctypes.data
    assert MPI.Aint_diff(MPI.Aint_add(MPI.Get_address(data), 24), MPI.Get_address(data)) == 24
    assert MPI.Get_address(MPI.BOTTOM) == 0
