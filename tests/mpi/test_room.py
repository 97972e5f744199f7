"""Nothing outside the memory that the program names is read or written: counts, displacements and extents are checked."""

from __future__ import annotations

import numpy
import pytest

from ompy import MPI

SELF = MPI.COMM_SELF
MOST = (1 << 63) - 1

# Types whose data lies beyond their extent, or before their beginning.
BEYOND = MPI.INT.Create_hindexed([1, 1], [0, 400]).Create_resized(0, 4).Commit()
BEFORE = MPI.INT.Create_hindexed([1], [-4]).Create_resized(0, 4).Commit()
OVERLAPPING = MPI.INT.Create_hvector(1 << 40, 1, 0).Commit()


def sent_and_received(message):
    SELF.Sendrecv(message, 0, 0, [bytearray(1 << 16), MPI.BYTE], 0, 0)


def received(message):
    SELF.Sendrecv([b"x", MPI.BYTE], 0, 0, message, 0, 0)


@pytest.mark.parametrize("use", [sent_and_received, received])
@pytest.mark.parametrize("kind", [BEYOND, BEFORE], ids=["beyond", "before"])
@pytest.mark.parametrize("make", [lambda: numpy.zeros(10, "i"), lambda: bytearray(40)], ids=["array", "bytes"])
def test_a_count_that_follows_from_the_extent_does_not_lead_out_of_the_buffer(use, kind, make):
    with pytest.raises(ValueError, match=r"10 elements reach from byte (0 to 440|-4 to 36), but the buffer has 40 bytes"):
        use([make(), kind])


def test_where_all_of_it_lies_in_the_buffer_it_is_sent():
    inner = MPI.INT.Create_hindexed([1], [4]).Create_resized(0, 8).Commit()
    into = numpy.zeros(3, "i")
    SELF.Sendrecv([numpy.arange(6, dtype="i"), inner], 0, 0, into, 0, 0)
    assert into.tolist() == [1, 3, 5]


@pytest.mark.parametrize("count", [9, 1 << 61, 1 << 62, MOST])
@pytest.mark.parametrize("kind", [MPI.BYTE, MPI.DOUBLE, BEYOND, OVERLAPPING], ids=["byte", "double", "beyond", "overlapping"])
@pytest.mark.parametrize(
    "call",
    [
        lambda message: SELF.Send(message, 0),
        lambda message: SELF.Recv(message, 0),
        lambda message: SELF.Bcast(message),
        lambda message: SELF.Allgather([bytearray(8), 8, MPI.BYTE], message),
        lambda message: SELF.Alltoall(message, [bytearray(8), 8, MPI.BYTE]),
        lambda message: SELF.Gather(message, [bytearray(8), 8, MPI.BYTE]),
        lambda message: SELF.Allreduce(MPI.IN_PLACE, message),
        lambda message: SELF.Ialltoall([bytearray(8), 8, MPI.BYTE], message),
        lambda message: SELF.Psend_init(message, 1 << 20, 0),
        lambda message: SELF.Recv_init(message, 0),
    ],
)
def test_a_count_beyond_the_buffer_is_an_error_however_large(count, kind, call):
    with pytest.raises((ValueError, MPI.Exception), match=r"the buffer has 8 bytes|more than a memory can hold"):
        call([bytearray(8), count, kind])


@pytest.mark.parametrize(
    "where",
    [
        ([9], [0]), ([1], [8]), ([1], [-1]), ([8], [1]), ([MOST], [0]), ([1], [MOST]), ([1 << 62], [1 << 62]), ([-1], [0]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["Allgatherv", "Alltoallv", "Gatherv", "Iallgatherv", "Alltoallv_init"])
def test_blocks_of_vectors_beyond_the_buffer_are_errors(where, name):
    with pytest.raises((ValueError, MPI.Exception)):
        getattr(SELF, name)([bytearray(8), MPI.BYTE], [bytearray(8), *where, MPI.BYTE])


@pytest.mark.parametrize("where", [([9], [0]), ([1], [8]), ([1], [-1]), ([MOST], [0]), ([1], [MOST]), ([-1], [0])])
@pytest.mark.parametrize("name", ["Alltoallw", "Ialltoallw", "Alltoallw_init"])
def test_blocks_of_several_types_beyond_the_buffer_are_errors(where, name):
    with pytest.raises((ValueError, MPI.Exception)):
        getattr(SELF, name)([bytearray(8), [MPI.BYTE]], [bytearray(8), where, [MPI.BYTE]])


def test_counts_of_a_reduction_that_wrap_round_to_the_right_sum_are_an_error():
    with pytest.raises((ValueError, MPI.Exception)):
        SELF.Reduce_scatter(bytearray(8), bytearray(8), [-8])


@pytest.mark.parametrize("kind", [BEYOND, BEFORE], ids=["beyond", "before"])
def test_packing_does_not_leave_the_buffer(kind):
    memory, packed = bytearray(40), bytearray(1000)
    for call in (
        lambda: kind.Pack(memory, packed, 0, SELF),
        lambda: kind.Unpack(packed, 0, memory, SELF),
        lambda: kind.Pack_external("external32", memory, packed, 0),
        lambda: kind.Unpack_external("external32", packed, 0, memory),
    ):
        with pytest.raises(ValueError, match="10 elements reach from byte"):
            call()
    assert bytes(memory) == bytes(40)


def test_sizes_that_no_memory_has_are_errors():
    with pytest.raises(MPI.Exception):
        MPI.DOUBLE.Pack_size(1 << 62, SELF)
    with pytest.raises(MPI.Exception):
        MPI.DOUBLE.Pack_external_size("external32", 1 << 62)


@pytest.mark.parametrize(
    "make",
    [
        lambda: MPI.DOUBLE.Create_contiguous(1 << 62),
        lambda: MPI.DOUBLE.Create_vector(1 << 31, 1 << 31, 1 << 31),
        lambda: MPI.BYTE.Create_hindexed([1], [MOST]),
        lambda: MPI.BYTE.Create_hindexed([1, 1], [-MOST, MOST - 1]),
        lambda: MPI.BYTE.Create_resized(MOST, MOST),
        lambda: MPI.Datatype.Create_struct([1, 1], [-(1 << 62), 1 << 62], [MPI.INT, MPI.BYTE.Create_resized(0, 1 << 62)]),
        lambda: MPI.INT.Create_subarray([1 << 40, 1 << 40], [1, 1], [1 << 39, 0]),
    ],
)
def test_datatypes_that_are_longer_than_memory_are_errors(make):
    with pytest.raises(MPI.Exception):
        make()


@pytest.mark.parametrize("kind", [MPI.BYTE, OVERLAPPING], ids=["byte", "overlapping"])
def test_references_to_objects_are_not_overwritten(kind):
    objects = numpy.array([None] * 4)
    with pytest.raises(BufferError, match="references to objects"):
        SELF.Recv([objects, 1, kind], 0)
    with pytest.raises(BufferError, match="references to objects"):
        SELF.Allgather([b"12345678", 1, MPI.BYTE], [objects, 1, kind])
