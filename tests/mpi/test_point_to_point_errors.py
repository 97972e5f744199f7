"""Bad arguments: each gives an exception that names the argument and what was expected, and loses no message."""

from __future__ import annotations

import pickle

import numpy
import pytest


def next_message_arrives(comm):
    """What was sent before and after the mistake is there, in order."""
    if comm.rank == 0:
        comm.Send(numpy.arange(10, dtype="i"), 1, 3)
    elif comm.rank == 1:
        got = numpy.zeros(10, "i")
        comm.Recv(got, 0, 3)
        assert (got == numpy.arange(10)).all()


MISTAKES = [
    ("comm.Send([data, -1, MPI.INT], 1)", ValueError, "negative count -1"),
    ("comm.Send(data, 2)", "ERR_RANK", "dest: 0 to 1 .* expected, not 2"),
    ("comm.Send(data, -7)", "ERR_RANK", "dest: .* not -7"),
    ("comm.Recv(data, 5)", "ERR_RANK", "source: 0 to 1 .* expected, not 5"),
    ("comm.Irecv(data, 5)", "ERR_RANK", "source"),
    ("comm.send(1, 9)", "ERR_RANK", "dest"),
    ("comm.Send(data, 1, -3)", "ERR_TAG", "tag: 0 to .* expected, not -3"),
    ("comm.Recv(data, 1, -3)", "ERR_TAG", "tag: .* or ANY_TAG expected, not -3"),
    ("comm.Recv(b'read-only', 1)", BufferError, "writable"),
    ("comm.Recv(frozen, 1)", BufferError, "writable"),
    ("comm.Send(scattered, 1)", BufferError, "contiguous"),
    ("comm.Send([1, 2, 3, 4, 5], 1)", ValueError, "2 to 4 items"),
    ("comm.Send({}, 1)", TypeError, "a buffer or a list or tuple"),
    ("comm.Send([data, 4, 'no such type'], 1)", KeyError, "no such type"),
    ("comm.Send([data, 4, MPI.DATATYPE_NULL], 1)", "ERR_TYPE", "DATATYPE_NULL"),
    ("comm.Send([data, 11, MPI.INT], 1)", ValueError, "buffer has 40 bytes"),
    ("comm.Send([data, (4, 11), MPI.INT], 1)", ValueError, "displacement 11"),
    ("comm.Send(numpy.zeros(3, '>i4'), 1)", BufferError, "byte order"),
    ("MPI.COMM_NULL.Send(data, 1)", "ERR_COMM", "COMM_NULL"),
    ("MPI.COMM_NULL.recv()", "ERR_COMM", "COMM_NULL"),
    ("comm.Send(data, 'one')", TypeError, ""),
    ("comm.Mprobe(7)", "ERR_RANK", "source"),
    ("MPI.REQUEST_NULL.Cancel()", "ERR_REQUEST", "REQUEST_NULL"),
    ("MPI.MESSAGE_NULL.Recv(data)", "ERR_REQUEST", "MESSAGE_NULL"),
    ("comm.Precv_init(data, 2, MPI.ANY_SOURCE, 1)", "ERR_ARG", "no wildcards"),
]


@pytest.mark.ompy(2)
def test_a_mistake_is_named_and_disturbs_nothing(comm):
    from ompy import MPI

    data = numpy.arange(10, dtype="i")
    frozen = data.copy()
    frozen.flags.writeable = False
    scattered = numpy.arange(20, dtype="i")[::2]
    names = {"comm": comm, "data": data, "frozen": frozen, "scattered": scattered, "MPI": MPI, "numpy": numpy}
    for call, kind, words in MISTAKES:
        if comm.rank == 0:
            before = comm.Isend(data, 1, 1)
            expected = MPI.Exception if isinstance(kind, str) else kind
            with pytest.raises(expected, match=words) as caught:
                eval(call, names)
            if isinstance(kind, str):
                assert caught.value.Get_error_class() == getattr(MPI, kind), call
            before.Wait()
        else:
            got = numpy.zeros(10, "i")
            comm.Recv(got, 0, 1)
            assert (got == data).all()
        next_message_arrives(comm)


@pytest.mark.ompy(2, mca={"btl": "self,sm"})
def test_a_truncated_message_fails_alone_in_shared_memory(comm):
    truncate(comm)


@pytest.mark.ompy(2, mca={"btl": "self,zmq"})
def test_a_truncated_message_fails_alone_over_tcp(comm):
    truncate(comm)


def truncate(comm):
    from ompy import MPI

    sizes = (100, 100_000, 2_000_000)
    if comm.rank == 0:
        for size in sizes:
            comm.Send(numpy.full(size, 7, "B"), 1, 1)
            comm.Send(b"next", 1, 1)
    else:
        for size in sizes:
            status = MPI.Status()
            got = numpy.zeros(60, "B")
            with pytest.raises(MPI.Exception, match=f"{size} bytes") as caught:
                comm.Recv(got[:50], 0, 1, status)
            assert caught.value.Get_error_class() == MPI.ERR_TRUNCATE
            assert status.source == 0
            assert (got[50:] == 0).all()
            after = bytearray(4)
            comm.Recv(after, 0, 1)
            assert after == b"next"


@pytest.mark.ompy(2)
def test_a_failed_request_of_several_is_in_its_status(comm):
    from ompy import MPI

    if comm.rank == 0:
        comm.Send(bytearray(10), 1, 0)
        comm.Send(bytearray(99), 1, 1)
    else:
        statuses = []
        requests = [comm.Irecv(bytearray(10), 0, 0), comm.Irecv(bytearray(10), 0, 1)]
        with pytest.raises(MPI.Exception, match="request 1") as caught:
            MPI.Request.Waitall(requests, statuses)
        assert caught.value.Get_error_class() == MPI.ERR_IN_STATUS
        assert [status.error for status in statuses] == [MPI.SUCCESS, MPI.ERR_TRUNCATE]
        assert not any(requests)


@pytest.mark.ompy(2)
def test_a_rejected_buffer_leaves_a_matched_message_to_be_received(comm):
    if comm.rank == 0:
        comm.Send(b"kept", 1)
    else:
        message = comm.Mprobe(0)
        with pytest.raises(BufferError, match="writable"):
            message.Recv(b"read-only")
        got = bytearray(4)
        message.Recv(got)
        assert got == b"kept"


@pytest.mark.ompy(2)
def test_the_error_handler_of_the_communicator_hears_of_it_once(comm):
    from ompy import MPI

    own = comm.Dup()
    heard = []
    handler = MPI.Comm.Create_errhandler(lambda handle, code: heard.append((handle == own, code)))
    own.Set_errhandler(handler)
    if own.rank == 0:
        with pytest.raises(MPI.Exception):
            own.Send(b"", 99)
        own.Send(bytearray(9), 1)
    else:
        with pytest.raises(MPI.Exception):
            own.Irecv(bytearray(2), 0).Wait()
    assert heard == [(True, MPI.ERR_RANK if own.rank == 0 else MPI.ERR_TRUNCATE)]
    handler.Free()
    own.Free()


@pytest.mark.ompy(1)
@pytest.mark.parametrize("kind", ["Sendrecv", "Isendrecv", "sendrecv", "Sendrecv_replace", "Isendrecv_replace"])
def test_what_can_not_be_sent_leaves_the_message_to_be_received_in_the_queues(comm, kind):
    scattered, room = numpy.zeros((4, 4))[:, 1], numpy.zeros(3, "i")
    calls = {
        "Sendrecv": lambda: comm.Sendrecv(scattered, 0, 1, room, 0, 2),
        "Isendrecv": lambda: comm.Isendrecv(scattered, 0, 1, room, 0, 2),
        "sendrecv": lambda: comm.sendrecv(lambda: None, 0, 1, source=0, recvtag=2),
        "Sendrecv_replace": lambda: comm.Sendrecv_replace(scattered, 0, 1, 0, 2),
        "Isendrecv_replace": lambda: comm.Isendrecv_replace(scattered, 0, 1, 0, 2),
    }
    request = comm.Isend(numpy.arange(3, dtype="i"), 0, 2)
    comm.Probe(0, 2)
    with pytest.raises((BufferError, AttributeError, TypeError, pickle.PicklingError), match=r"contiguous|pickle"):
        calls[kind]()
    comm.Recv(room, 0, 2)
    request.Wait()
    assert room.tolist() == [0, 1, 2]
    assert not comm.Iprobe()
