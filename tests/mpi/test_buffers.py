"""Message specifications in all their forms, `MPI.buffer`, and memory that other libraries own."""

from __future__ import annotations

import array
import gc

import numpy
import pytest

from ompy import MPI

SELF = MPI.COMM_SELF


def through(message, into):
    """Send a message to oneself."""
    SELF.Sendrecv(message, 0, 0, into, 0, 0)


@pytest.mark.parametrize(
    "form",
    [
        lambda data: data,
        lambda data: [data, MPI.INT],
        lambda data: (data, MPI.INT),
        lambda data: [data, "i"],
        lambda data: [data, "i4"],
        lambda data: [data, 6],
        lambda data: [data, 6, MPI.INT],
        lambda data: [data, (6, 0), MPI.INT],
        lambda data: [data, 6, 0, MPI.INT],
        lambda data: [data, (6, None), "i"],
        lambda data: [memoryview(data), None, MPI.INT],
        lambda data: [data, 24, MPI.BYTE],
        lambda data: [data, numpy.int64(6), MPI.INT],
        lambda data: MPI.buffer.frombuffer(data),
    ],
)
@pytest.mark.parametrize("make", [lambda values: numpy.array(values, "i"), lambda values: array.array("i", values)])
def test_every_form_means_the_same_six_integers(form, make):
    sent, got = make(range(6)), make([0] * 6)
    through(form(sent), form(got))
    assert list(got) == list(range(6))


def test_a_displacement_counts_elements():
    sent, got = numpy.arange(10, dtype="h"), numpy.zeros(10, "h")
    through([sent, (3, 2), MPI.SHORT], [got, 3, 5, MPI.SHORT])
    assert list(got) == [0, 0, 0, 0, 0, 2, 3, 4, 0, 0]


def test_bottom_takes_absolute_addresses():
    sent, got = numpy.arange(5.0), numpy.zeros(5)
    types = [MPI.DOUBLE.Create_hindexed([5], [MPI.Get_address(data)]).Commit() for data in (sent, got)]
    through([MPI.BOTTOM, 1, types[0]], [MPI.BOTTOM, 1, types[1]])
    assert (got == sent).all()
    for made in types:
        made.Free()


NOWHERE = {
    "BOTTOM": lambda: [MPI.BOTTOM, 1, MPI.INT],
    "a buffer at address 16": lambda: [MPI.buffer.fromaddress(16, 8), MPI.DOUBLE],
    "a type that begins at 16": lambda: [MPI.BOTTOM, 1, MPI.INT.Create_hindexed([1], [16]).Commit()],
}


@pytest.mark.parametrize("form", NOWHERE.values(), ids=NOWHERE)
@pytest.mark.parametrize("call", ["Isend", "Irecv"])
def test_elements_where_no_memory_is_are_refused(form, call):
    with pytest.raises(MPI.Exception, match="where no memory is") as caught:
        getattr(SELF, call)(form(), 0)
    assert caught.value.Get_error_class() == MPI.ERR_BUFFER


@pytest.mark.parametrize(
    "call",
    [
        lambda: SELF.Alltoallv([MPI.BOTTOM, ([1], [0]), MPI.INT], numpy.zeros(1, "i")),
        lambda: SELF.Alltoallw([MPI.BOTTOM, ([1], [8]), [MPI.INT]], [numpy.zeros(1, "i"), ([1], [0]), [MPI.INT]]),
        lambda: MPI.INT.Pack(MPI.buffer.fromaddress(16, 8), bytearray(8), 0, SELF),
    ],
)
def test_elements_where_no_memory_is_are_refused_in_other_places_too(call):
    with pytest.raises(MPI.Exception, match="where no memory is"):
        call()


def test_nothing_may_be_anywhere():
    SELF.Sendrecv([MPI.BOTTOM, 0, MPI.INT], 0, 0, [MPI.BOTTOM, 0, MPI.INT], 0, 0)


@pytest.mark.parametrize("code", "?bhilqBHILQefdgFDG")
def test_arrays_carry_their_type(code):
    status = MPI.Status()
    sent = numpy.ones((3, 4), code)
    got = numpy.zeros((4, 3), code)
    # Twice: the first array of a type is looked at more closely than the next.
    for _ in range(2):
        got[:] = 0
        SELF.Sendrecv(sent, 0, 0, got, 0, 0, status)
        assert (got == 1).all()
        assert status.count == sent.nbytes


def test_an_array_in_the_order_of_fortran_is_contiguous():
    sent, got = numpy.asfortranarray(numpy.arange(12).reshape(3, 4)), numpy.zeros((3, 4), "l", order="F")
    through(sent, got)
    assert (got == sent).all()


def test_the_array_may_be_a_scalar_or_empty():
    got = numpy.array(0.0)
    through(numpy.array(2.5), got)
    assert got == 2.5
    through(numpy.empty((0, 5)), numpy.empty(0))


def test_a_dtype_that_is_no_mpi_type_needs_one_named():
    record = numpy.zeros(3, [("a", "i4"), ("b", "f8")])
    with pytest.raises(KeyError):
        through(record, record.copy())
    got = record.copy()
    record["b"] = 7
    through([record, MPI.BYTE], [got, MPI.BYTE])
    assert (got == record).all()


class Device:
    """An array of another library: its memory is NumPy's, its protocol is not Python's."""

    def __init__(self, values):
        self.values = values


class DLPack(Device):
    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Cuda(Device):
    @property
    def __cuda_array_interface__(self):
        return {**self.values.__array_interface__, "version": 3, "descr": None}


@pytest.mark.parametrize("kind", [DLPack, Cuda])
def test_memory_of_other_libraries_is_used_where_it_lies(kind):
    sent, got = kind(numpy.arange(6.0).reshape(2, 3)), kind(numpy.zeros(6))
    through(sent, got)
    assert (got.values == numpy.arange(6.0)).all()
    through([sent, 3, MPI.DOUBLE], [got, (3, 3), MPI.DOUBLE])
    assert list(got.values) == [0, 1, 2, 0, 1, 2]
    with pytest.raises(BufferError, match="not contiguous"):
        through(kind(numpy.arange(10.0)[::2]), got)


def test_items_at_address_0_are_refused():
    class Moved(Cuda):
        @property
        def __cuda_array_interface__(self):
            return {**super().__cuda_array_interface__, "data": (0, False)}

    with pytest.raises(BufferError, match="6 items at address 0"):
        through(Moved(numpy.zeros(6)), numpy.zeros(6))
    through(Moved(numpy.zeros(0)), numpy.zeros(0))


@pytest.mark.parametrize("wrong", [{"typestr": "<iX"}, {"data": (0,)}])
def test_a_wrong_description_of_memory_is_a_value_error(wrong):
    class Wrong(Cuda):
        @property
        def __cuda_array_interface__(self):
            return {**super().__cuda_array_interface__, **wrong}

    memory = Wrong(numpy.zeros(6))
    with pytest.raises(ValueError, match=r"unpack|invalid literal") as raised:
        through(numpy.zeros(6), memory)
    assert not isinstance(raised.value, BufferError)


def test_memory_stays_alive_as_long_as_the_operation_needs_it():
    request = SELF.Irecv(memory := bytearray(8), 0)
    with pytest.raises(BufferError):
        memory.append(0)
    SELF.Send(b"12345678", 0)
    request.Wait()
    memory.append(0)
    assert memory == b"12345678\0"


def test_a_failed_specification_lets_go_of_the_memory():
    memory = bytearray(8)
    for message in ([memory, -1, MPI.BYTE], [memory, 9, MPI.BYTE], [memory, 1, MPI.DATATYPE_NULL], [memory, "x" * 9]):
        with pytest.raises((ValueError, KeyError, MPI.Exception)):
            SELF.Send(message, 0)
    memory.append(0)


def test_mpi_buffer_is_a_view_of_bytes():
    own = MPI.buffer.allocate(16, clear=True)
    assert own.address % 64 == 0
    assert own.tobytes() == bytes(16)
    own[2:5] = b"abc"
    own[-1] = 255
    assert bytes(own[1:6]) == b"\0abc\0"
    assert own[15] == 255
    with pytest.raises(ValueError, match="3 bytes expected"):
        own[0:3] = b"four"
    with pytest.raises(IndexError):
        own[16]
    with pytest.raises(IndexError, match="step"):
        own[::2]
    frozen = own.toreadonly()
    with pytest.raises(TypeError, match="read-only"):
        frozen[0] = 1
    again = MPI.buffer.fromaddress(own.address, own.nbytes)
    assert again.tobytes() == own.tobytes()
    own.release()
    assert (own.address, own.nbytes) == (0, 0)


def test_allocated_memory_is_freed_once():
    memory = MPI.Alloc_mem(100)
    assert memory.nbytes == 100
    twin = MPI.buffer.fromaddress(memory.address, 100)
    MPI.Free_mem(memory)
    with pytest.raises(MPI.Exception, match="Alloc_mem"):
        MPI.Free_mem(twin)


@pytest.mark.parametrize("look", [memoryview, lambda memory: memory[2:5], lambda memory: numpy.frombuffer(memory, "u1")])
def test_memory_that_is_looked_at_outlasts_its_release(look):
    owner = bytearray(1 << 22)
    memory = MPI.memory.frombuffer(owner)
    view = look(memory)
    memory.release()
    memory.release()
    assert (memory.address, memory.nbytes, len(memoryview(memory))) == (0, 0, 0)
    with pytest.raises(BufferError, match="export"):
        owner.clear()
    assert view[0] == 0
    del view
    gc.collect()
    owner.clear()


def test_a_part_of_a_buffer_stays_that_part_when_it_becomes_read_only():
    part = MPI.memory.frombuffer(bytearray(b"abcdefgh"))[2:4]
    assert bytes(part.toreadonly()) == b"cd" == part.toreadonly().tobytes()


@pytest.mark.parametrize(("address", "nbytes"), [(0, 5), (-1, 5), (-1, 0)])
def test_no_memory_is_at_such_an_address(address, nbytes):
    with pytest.raises(ValueError, match=f"{nbytes} bytes at address {address}"):
        MPI.memory.fromaddress(address, nbytes)


def test_a_dlpack_producer_may_answer_with_an_older_version_than_was_asked_for():
    class Older(DLPack):
        def __dlpack__(self, max_version=None, **options):
            return self.values.__dlpack__()

    through(Older(numpy.arange(6.0)), got := Older(numpy.zeros(6)))
    assert (got.values == numpy.arange(6.0)).all()
