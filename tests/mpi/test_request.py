"""Requests: null and inactive ones, sets of them, generalised ones, and coroutines that await them."""

from __future__ import annotations

import asyncio
import gc
import weakref

import numpy
import pytest

from ompy import MPI
from ompy.core.errors import ERR_OTHER, MPIError
from ompy.core.progress_source import ProgressSource, register_source, unregister_source

SELF = MPI.COMM_SELF


def pending(count):
    """Receives that nothing was sent to yet, and a function that sends to one of them."""
    buffers = [numpy.zeros(1, "i") for _ in range(count)]
    requests = [SELF.Irecv(buffers[tag], 0, tag) for tag in range(count)]

    def complete(tag):
        SELF.Send(numpy.array([tag + 100], "i"), 0, tag)

    return buffers, requests, complete


def finish(requests, complete):
    for tag, request in enumerate(requests):
        if request:
            complete(tag)
    MPI.Request.Waitall(requests)


def test_a_null_request_is_complete_with_an_empty_status():
    status = MPI.Status()
    status.source = 5
    request = MPI.Request()
    assert request == MPI.REQUEST_NULL
    assert not request
    assert request.Wait(status) is True
    assert (status.source, status.tag, status.count) == (MPI.ANY_SOURCE, MPI.ANY_TAG, 0)
    assert request.test() == (True, None)
    assert MPI.Request.Waitany([request, request]) == MPI.UNDEFINED
    assert MPI.Request.Testany([]) == (MPI.UNDEFINED, True)
    assert MPI.Request.Waitsome([request]) is None
    assert MPI.Request.waitall([request, request]) == [None, None]


def test_a_test_says_whether_the_operation_is_complete():
    buffers, requests, complete = pending(1)
    assert requests[0].Test() is False
    assert requests[0].Get_status() is False
    complete(0)
    status = MPI.Status()
    while not requests[0].Get_status(status):
        pass
    assert status.source == 0
    # A look leaves the request as it is, a test does not.
    assert requests[0]
    assert requests[0].Test(status) is True
    assert not requests[0]
    assert buffers[0][0] == 100


def test_one_of_several():
    buffers, requests, complete = pending(4)
    assert MPI.Request.Testany(requests) == (MPI.UNDEFINED, False)
    complete(2)
    status = MPI.Status()
    assert MPI.Request.Waitany(requests, status) == 2
    assert (status.tag, buffers[2][0]) == (2, 102)
    complete(0)
    index, flag = MPI.UNDEFINED, False
    while not flag:
        index, flag = MPI.Request.Testany(requests, status)
    assert index == 0
    finish(requests, complete)


def test_some_of_several():
    _, requests, complete = pending(4)
    assert MPI.Request.Testsome(requests) == []
    complete(3)
    complete(1)
    statuses = []
    done = []
    while len(done) < 2:
        done += MPI.Request.Waitsome(requests, statuses)
    assert sorted(done) == [1, 3]
    assert all(status.tag in (1, 3) for status in statuses)
    finish(requests, complete)


def test_all_of_several():
    buffers, requests, complete = pending(3)
    assert MPI.Request.Testall(requests) is False
    for tag in (2, 0, 1):
        complete(tag)
    statuses = [MPI.Status()]
    assert MPI.Request.Waitall(requests, statuses) is True
    assert [status.tag for status in statuses] == [0, 1, 2]
    assert [int(buffer[0]) for buffer in buffers] == [100, 101, 102]
    assert not any(requests)


def test_a_set_holds_requests_and_nothing_else():
    with pytest.raises(TypeError, match="Requests expected"):
        MPI.Request.Waitall([None])
    with pytest.raises(TypeError, match="Statuses expected"):
        MPI.Request.Waitall([MPI.REQUEST_NULL], (1,))


def test_a_request_that_is_let_go_of_completes_all_the_same():
    buffer = numpy.zeros(1, "i")
    SELF.Irecv(buffer, 0, 1).Free()
    SELF.Irecv(numpy.zeros(1000, "i"), 0, 2)
    gc.collect()
    SELF.Send(numpy.array([5], "i"), 0, 1)
    SELF.Send(numpy.zeros(1000, "i"), 0, 2)
    while not buffer[0]:
        SELF.Iprobe()
    assert buffer[0] == 5


def test_a_persistent_request_is_started_once_at_a_time():
    request = SELF.Recv_init(buffer := bytearray(3), 0)
    assert request.Test()
    request.Start()
    with pytest.raises(MPI.Exception, match="active already") as caught:
        request.Start()
    assert caught.value.Get_error_class() == MPI.ERR_REQUEST
    SELF.Send(b"abc", 0)
    request.Wait()
    assert buffer == b"abc"
    request.Free()
    with pytest.raises(TypeError, match="Prequest expected"):
        MPI.Prequest(MPI.Grequest.Start())


def test_the_program_completes_a_generalised_request():
    calls = []

    def query(status, name):
        calls.append(f"query {name}")
        status.source = 7
        status.Set_elements(MPI.INT, 3)

    request = MPI.Grequest.Start(query, lambda name: calls.append(f"free {name}"), None, ("job",))
    assert not request.Test()
    request.complete("result")
    with pytest.raises(MPI.Exception, match="complete already"):
        request.Complete()
    status = MPI.Status()
    assert request.wait(status) == "result"
    assert (status.source, status.Get_count(MPI.INT)) == (7, 3)
    assert calls == ["query job", "free job"]
    assert not request


def test_a_callback_that_fails_fails_the_wait(capfd):
    def query(status):
        raise ValueError("no status today")

    request = MPI.Grequest.Start(query)
    request.Complete()
    with pytest.raises(MPI.Exception, match="no status today") as caught:
        request.Wait()
    assert caught.value.Get_error_class() == MPI.ERR_OTHER
    assert "no status today" in capfd.readouterr().err
    assert not request


def test_a_coroutine_awaits_a_request_while_others_run():
    async def receive():
        return await SELF.irecv(source=0, tag=1)

    async def send():
        await asyncio.sleep(0)
        await SELF.isend("awaited", 0, 1)

    async def both():
        return (await asyncio.gather(receive(), send()))[0]

    assert asyncio.run(both()) == "awaited"


def test_copies_and_integers_stand_for_the_same_operation():
    request = SELF.Irecv(bytearray(1), 0)
    assert MPI.Request(request) == request
    assert MPI.Request.fromhandle(request.handle) == request
    assert MPI.Request.f2py(request.py2f()) == request
    SELF.Send(b"a", 0)
    request.Wait()
    assert request.handle == 0


def test_a_copied_handle_has_no_part_in_later_receives():
    """Receives are used again once nobody refers to them, and not before."""
    got, later = numpy.zeros(1), numpy.zeros(1)
    first = SELF.Irecv(got, 0, 1)
    copy = MPI.Request(first)
    SELF.Send(numpy.ones(1), 0, 1)
    first.Wait()
    others = [SELF.Irecv(later, 0, 2) for _ in range(3)]
    assert copy.Test()
    assert not any(other.Test() for other in others)
    for other in others:
        other.Cancel()
        other.Wait()
    assert got[0] == 1
    assert later[0] == 0


def test_short_sends_are_complete_however_often_they_are_asked():
    sends = [SELF.Isend(numpy.array([float(number)]), 0, 3) for number in range(5)]
    status = MPI.Status()
    assert sends[0].Test(status)
    assert not sends[0]
    assert not status.Is_cancelled()
    sends[1].Cancel()
    sends[1].Wait(status)
    assert not status.Is_cancelled()
    sends[2].Free()
    MPI.Request.Waitall(sends)
    assert not any(sends)
    got = numpy.zeros(1)
    for number in range(5):
        SELF.Recv(got, 0, 3)
        assert got[0] == number


def test_memory_of_a_complete_send_is_let_go():
    class Memory(bytearray):
        pass

    memory = Memory(8)
    gone = weakref.ref(memory)
    request = SELF.Isend(memory, 0, 4)
    request.Wait()
    del memory
    SELF.Recv(bytearray(8), 0, 4)
    assert gone() is None


@pytest.mark.ompy(2)
@pytest.mark.parametrize("kind", ["object", "array"])
def test_a_persistent_receive_after_one_that_found_its_message_there_is_inactive(comm, kind):
    block = numpy.zeros(4)
    for turn in range(3):
        if comm.rank == 0:
            comm.Send(numpy.full(4, turn + 0.5), 1, 1) if kind == "array" else comm.send(turn, 1, 1)
            comm.Barrier()
            comm.Send(numpy.full(4, turn + 1.0), 1, 2)
        else:
            comm.Barrier()
            if kind == "array":
                comm.Recv(block, 0, 1)
            else:
                assert comm.recv(source=0, tag=1) == turn
            request = comm.Recv_init(block, 0, 2)
            assert request.Test()
            request.Start()
            request.Wait()
            assert (block == turn + 1).all()
            request.Free()


@pytest.mark.ompy(2)
def test_flushes_of_one_buffer_that_are_under_way_at_once_all_complete(comm):
    if comm.rank == 0:
        MPI.Attach_buffer(bytearray(1 << 23))
        comm.Bsend(numpy.zeros(1 << 19), 1, 1)
        requests = [MPI.Iflush_buffer() for _ in range(3)]
        assert not requests[0].Test()
        comm.Barrier()
        MPI.Request.Waitall(requests)
        MPI.Detach_buffer()
    else:
        comm.Barrier()
        comm.Recv(numpy.zeros(1 << 19), 0, 1)


@pytest.mark.ompy(2, mca={"btl": "self,sm"})
def test_sends_of_which_more_wait_than_sixteen_bits_count_are_received_in_order(comm):
    count = 70_000
    if comm.rank == 0:
        data = numpy.arange(count, dtype="i4")
        requests = [comm.Isend(data[number : number + 1], 1, 1) for number in range(count)]
        comm.Ibarrier().Wait()
        MPI.Request.Waitall(requests)
    else:
        found = numpy.zeros(count, "i4")
        barrier = comm.Ibarrier()
        for number in range(count):
            comm.Recv(found[number : number + 1], 0, 1)
        barrier.Wait()
        assert (found == numpy.arange(count)).all()


@pytest.mark.ompy(2)
def test_a_collective_under_way_is_neither_cancelled_nor_freed(comm):
    total = numpy.zeros(1)
    request = comm.Iallreduce(numpy.ones(1), total)
    for call in (request.Cancel, request.Free):
        with pytest.raises(MPI.Exception, match="a collective") as caught:
            call()
        assert caught.value.Get_error_class() == MPI.ERR_REQUEST
    request.Wait()
    assert total[0] == 2
    persistent = comm.Barrier_init()
    persistent.Free()


def test_a_buffered_send_that_finds_no_room_was_not_started():
    request = MPI.COMM_SELF.Bsend_init(bytearray(b"0123456789"), 0, 1)
    for buffer in (None, bytearray(5)):
        if buffer is not None:
            MPI.Attach_buffer(buffer)
        with pytest.raises(MPI.Exception) as caught:
            request.Start()
        assert caught.value.Get_error_class() == MPI.ERR_BUFFER
        assert request.Test()
    MPI.Detach_buffer()
    MPI.Attach_buffer(MPI.BUFFER_AUTOMATIC)
    request.Start()
    MPI.COMM_SELF.Recv(got := bytearray(10), 0, 1)
    request.Wait()
    request.Free()
    MPI.Detach_buffer()
    assert got == b"0123456789"


def test_what_a_generalised_request_holds_is_freed_when_it_is_let_go_of_and_complete():
    calls = []
    request = MPI.Grequest.Start(None, lambda: calls.append("free"))
    other = MPI.Grequest(request)
    request.Free()
    assert calls == []
    other.Complete()
    assert calls == ["free"]


@pytest.mark.parametrize(
    "take", [lambda m: m.recv(), lambda m: m.irecv(), lambda m: m.Recv(bytearray(9)), lambda m: m.Irecv(bytearray(9))]
)
def test_a_message_that_was_received_through_another_handle_is_an_error(take):
    MPI.COMM_SELF.send("it", 0, 5)
    message = MPI.COMM_SELF.mprobe(0, 5)
    other = MPI.Message(message)
    assert message.recv() == "it"
    with pytest.raises(MPI.Exception, match="was received already") as caught:
        take(other)
    assert caught.value.Get_error_class() == MPI.ERR_REQUEST


def test_partitions_of_what_is_not_under_way_have_arrived():
    """MPI-4.1, 4.2.2: of an inactive request, and of REQUEST_NULL."""
    send = MPI.COMM_SELF.Psend_init(bytearray(4), 4, 0)
    receive = MPI.COMM_SELF.Precv_init(bytearray(4), 4, 0, 0)
    assert receive.Parrived(3)
    MPI.Prequest.Startall([send, receive])
    assert not receive.Parrived(3)
    send.Pready_range(0, 3)
    MPI.Request.Waitall([send, receive])
    assert receive.Parrived(3)
    receive.Free()
    assert receive.Parrived(3)
    with pytest.raises(MPI.Exception, match="not REQUEST_NULL"):
        receive.Pready(3)
    send.Free()


@pytest.mark.parametrize("size", [4, 1 << 17])
def test_a_partitioned_request_that_was_freed_through_another_handle_is_an_error(size):
    for made in (MPI.COMM_SELF.Psend_init(bytearray(size), 4, 0), MPI.COMM_SELF.Precv_init(bytearray(size), 4, 0, 0)):
        other = MPI.Prequest(made)
        made.Free()
        with pytest.raises(MPI.Exception, match="freed through another handle") as caught:
            other.Start()
        assert caught.value.Get_error_class() == MPI.ERR_REQUEST


def test_partitions_of_a_range_that_goes_back_are_refused():
    request = MPI.COMM_SELF.Psend_init(bytearray(4), 4, 0)
    request.Start()
    with pytest.raises(MPI.Exception, match="partition_low: at most partition_high, 1, expected, got 3"):
        request.Pready_range(3, 1)
    request.Pready_range(0, 3)
    receive = MPI.COMM_SELF.Precv_init(bytearray(4), 4, 0, 0)
    receive.Start()
    MPI.Request.Waitall([request, receive])


def test_a_range_with_a_partition_that_is_ready_marks_none():
    send = MPI.COMM_SELF.Psend_init(bytearray(b"0123"), 4, 0)
    receive = MPI.COMM_SELF.Precv_init(got := bytearray(4), 4, 0, 0)
    MPI.Prequest.Startall([send, receive])
    send.Pready(3)
    with pytest.raises(MPI.Exception, match="partition: 3 is ready already"):
        send.Pready_range(0, 3)
    assert not receive.Test()
    send.Pready_range(0, 2)
    MPI.Request.Waitall([send, receive])
    assert got == b"0123"


class Failing(ProgressSource):
    """Fails once."""

    def __init__(self):
        self.left = 1

    def progress(self):
        if self.left:
            self.left = 0
            raise MPIError(ERR_OTHER, "a source fails")
        return 0


@pytest.mark.parametrize(
    "look",
    [
        lambda requests: requests[0].Test(),
        MPI.Request.Testany,
        MPI.Request.Testall,
        lambda requests: MPI.Request.Testall(requests[:1]),
        MPI.Request.Waitany,
    ],
    ids=["Test", "Testany", "Testall", "Testall of one", "Waitany"],
)
def test_what_fails_while_a_request_is_looked_at_is_the_communicators_to_handle(look):
    _, requests, complete = pending(2)
    source = Failing()
    register_source(source)
    try:
        with pytest.raises(MPI.Exception, match="a source fails"):
            look(requests)
    finally:
        unregister_source(source)
    assert not any(request.Test() for request in requests)
    finish(requests, complete)
