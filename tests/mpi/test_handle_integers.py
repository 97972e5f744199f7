"""The integers that stand for MPI objects: of what is gone they mean nothing, and the handles of it are null."""

from __future__ import annotations

import numpy
import pytest

from ompy import MPI

SELF = MPI.COMM_SELF


def received() -> MPI.Request:
    """A receive whose message is there."""
    request = SELF.Irecv(numpy.zeros(1), 0, 5)
    SELF.Send(numpy.ones(1), 0, 5)
    while not request.Get_status():
        pass
    return request


def truncated(request: MPI.Request) -> None:
    with pytest.raises(MPI.Exception):
        request.Wait()


WAITS = {
    "Wait": lambda request: request.Wait(),
    "wait": lambda request: request.wait(),
    "Test": lambda request: request.Test(),
    "Waitall": lambda request: MPI.Request.Waitall([request]),
    "Waitany": lambda request: MPI.Request.Waitany([request]),
    "Waitsome": lambda request: MPI.Request.Waitsome([request]),
    "waitall": lambda request: MPI.Request.waitall([request]),
    "a copy's": lambda request: MPI.Request(request).Wait(),
    "Free": lambda request: request.Free(),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_the_integer_of_a_request_means_nothing_once_it_is_complete(wait) -> None:
    request = received()
    number = request.handle
    wait(request)
    with pytest.raises(ValueError, match="stands for no live Request"):
        MPI.Request.fromhandle(number)


def test_the_integer_of_a_cancelled_request_means_nothing() -> None:
    request = SELF.Irecv(bytearray(1), 0, 4)
    number = request.handle
    request.Cancel()
    request.Wait()
    with pytest.raises(ValueError, match="no live Request"):
        MPI.Request.fromhandle(number)


def test_the_integer_of_a_request_that_failed_means_nothing() -> None:
    request = SELF.Irecv(bytearray(1), 0, 6)
    number = request.py2f()
    SELF.Send(bytes(9), 0, 6)
    truncated(request)
    with pytest.raises(ValueError, match="no live Request"):
        MPI.Request.f2py(number)


@pytest.mark.parametrize("receive", ["Recv", "Irecv"])
def test_the_integer_of_a_message_means_nothing_once_it_is_received(receive: str) -> None:
    SELF.Send(numpy.ones(1), 0, 7)
    message = SELF.Mprobe(0, 7)
    number = message.handle
    request = getattr(message, receive)(numpy.zeros(1))
    if receive == "Irecv":
        request.Wait()
    with pytest.raises(ValueError, match="no live Message"):
        MPI.Message.fromhandle(number)


@pytest.mark.parametrize("number", [-1, 1 << 70, 123456789])
def test_any_other_integer_means_nothing(number: int) -> None:
    assert SELF.handle
    with pytest.raises(ValueError, match=f"handle {number} stands for no live Comm"):
        MPI.Comm.fromhandle(number)


def test_a_persistent_request_keeps_its_integer_until_it_is_freed() -> None:
    request = SELF.Recv_init(bytearray(1), 0, 8)
    number = request.handle
    for _ in range(2):
        request.Start()
        SELF.Send(b"a", 0, 8)
        request.Wait()
        assert MPI.Request.fromhandle(number) == request
    request.Free()
    with pytest.raises(ValueError, match="no live Request"):
        MPI.Request.fromhandle(number)


def test_a_handle_whose_integer_others_can_write_is_null_once_its_object_is_gone() -> None:
    request, group, datatype = received(), SELF.Get_group(), MPI.INT.Dup()
    copy, group_copy = MPI.Request(request), MPI.Group(group)
    for handle in (request, copy, group, group_copy, datatype):
        assert MPI._addressof(handle)
    request.Wait()
    group.Free()
    datatype.Free()
    assert (request, group, datatype) == (MPI.REQUEST_NULL, MPI.GROUP_NULL, MPI.DATATYPE_NULL)
    assert not any((request, group, datatype))
    assert copy.Test()
    assert group_copy.size == 1


def test_group_empty_is_there_after_its_free() -> None:
    copy = MPI.Group(MPI.GROUP_EMPTY)
    MPI.GROUP_EMPTY.Free()
    assert MPI.GROUP_EMPTY.size == 0
    assert MPI.Group.Union(SELF.Get_group(), MPI.GROUP_EMPTY).size == 1
    copy.Free()
    assert copy == MPI.GROUP_NULL
