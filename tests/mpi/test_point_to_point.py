"""Sends and receives between ranks: modes, wildcards, PROC_NULL, probes, persistent and partitioned operations."""

from __future__ import annotations

import os
import signal

import numpy
import pytest

SIZES = (0, 1, 7, 4096, 65536, 1 << 20)
MODES = ("Send", "Ssend", "Rsend", "Bsend")


def pattern(size, seed=0):
    return ((numpy.arange(size) * 7 + seed) % 251).astype("B")


def deliver_by_every_mode(comm):
    from ompy import MPI

    MPI.Attach_buffer(None)
    for mode in MODES:
        for size in SIZES:
            if comm.rank == 0:
                # Ready mode may begin only when the receive is posted.
                comm.Recv(bytearray(0), 1, 1)
                getattr(comm, mode)(pattern(size, size), 1, 5)
            else:
                got = numpy.full(size + 3, 255, "B")
                request = comm.Irecv(got, 0, 5)
                comm.Send(bytearray(0), 0, 1)
                status = MPI.Status()
                request.Wait(status)
                assert (status.source, status.tag, status.count) == (0, 5, size)
                assert (got[:size] == pattern(size, size)).all()
                assert (got[size:] == 255).all()
    assert MPI.Detach_buffer() == MPI.BUFFER_AUTOMATIC


@pytest.mark.ompy(2, mca={"btl": "self,sm"})
def test_every_mode_delivers_every_size_through_shared_memory(comm):
    deliver_by_every_mode(comm)


@pytest.mark.ompy(2, mca={"btl": "self,zmq"})
def test_every_mode_delivers_every_size_through_tcp(comm):
    deliver_by_every_mode(comm)


@pytest.mark.ompy(2, mca={"pml": "cm", "mtl": "portals"})
def test_every_mode_delivers_every_size_where_the_kernel_of_portals_matches(comm):
    deliver_by_every_mode(comm)


@pytest.mark.ompy(2, mca={"pml": "cm", "mtl": "portals", "btl": "self,zmq"})
def test_every_mode_delivers_every_size_where_the_kernel_matches_over_tcp(comm):
    deliver_by_every_mode(comm)


@pytest.mark.ompy(2, mca={"btl": "portals,self"})
def test_every_mode_delivers_every_size_as_portals_carry_it(comm):
    deliver_by_every_mode(comm)


@pytest.mark.ompy(3)
def test_messages_of_one_sender_arrive_in_order_through_wildcards(comm):
    from ompy import MPI

    count = 50
    if comm.rank == 0:
        seen = {1: [], 2: []}
        for _ in range(2 * count):
            status = MPI.Status()
            number = numpy.empty(1, "i")
            comm.Recv(number, MPI.ANY_SOURCE, MPI.ANY_TAG, status)
            assert status.tag == number[0] % 3
            seen[status.source].append(number[0])
        assert seen == {1: list(range(count)), 2: list(range(count))}
    else:
        for number in range(count):
            comm.Send(numpy.array([number], "i"), 0, number % 3)


@pytest.mark.ompy(1)
def test_nobody_is_reached_through_proc_null(comm):
    from ompy import MPI

    status = MPI.Status()
    buffer = bytearray(b"as it was")
    comm.Send(buffer, MPI.PROC_NULL)
    comm.Recv(buffer, MPI.PROC_NULL, 3, status)
    assert buffer == b"as it was"
    assert (status.source, status.tag, status.count) == (MPI.PROC_NULL, MPI.ANY_TAG, 0)
    for request in (comm.Isend(buffer, MPI.PROC_NULL), comm.Irecv(buffer, MPI.PROC_NULL), comm.irecv(source=MPI.PROC_NULL)):
        assert request.wait() is None
    assert comm.recv(source=MPI.PROC_NULL) is None
    assert comm.Probe(MPI.PROC_NULL, status=status) is True
    assert status.source == MPI.PROC_NULL
    persistent = comm.Recv_init(buffer, MPI.PROC_NULL)
    for _ in range(2):
        persistent.Start()
        persistent.Wait(status)
        assert status.source == MPI.PROC_NULL
    persistent.Free()


@pytest.mark.ompy(2)
def test_send_and_receive_at_once_does_not_deadlock(comm):
    from ompy import MPI

    peer = 1 - comm.rank
    for size in SIZES:
        mine, got = pattern(size, comm.rank), numpy.empty(size, "B")
        status = MPI.Status()
        comm.Sendrecv(mine, peer, comm.rank, got, peer, peer, status)
        assert (got == pattern(size, peer)).all()
        assert (status.source, status.tag) == (peer, peer)
        both = mine.copy()
        comm.Sendrecv_replace(both, peer, 0, peer, 0)
        assert (both == got).all()
        comm.Isendrecv_replace(both, peer, 0, peer, 0).Wait(status)
        assert (both == mine).all()
        assert status.count == size
        got[:] = 0
        comm.Isendrecv(mine, peer, 2, got, peer, 2).Wait()
        assert (got == pattern(size, peer)).all()


@pytest.mark.ompy(2)
def test_a_strided_type_arrives_in_a_contiguous_one(comm):
    from ompy import MPI

    column = MPI.DOUBLE.Create_vector(40, 1, 25).Commit()
    if comm.rank == 0:
        matrix = numpy.arange(1000.0).reshape(40, 25)
        comm.Send([matrix, 1, column], 1)
        comm.Sendrecv_replace([matrix, 1, column], 1, 0, 1, 0)
        assert (matrix[:, 0] == -numpy.arange(40.0)).all()
        assert (matrix[:, 1:] == numpy.arange(1000.0).reshape(40, 25)[:, 1:]).all()
    else:
        got = numpy.empty(40)
        comm.Recv(got, 0)
        assert (got == numpy.arange(40.0) * 25).all()
        comm.Sendrecv_replace([-numpy.arange(40.0), MPI.DOUBLE], 0, 0, 0, 0)
    column.Free()


@pytest.mark.ompy(2)
def test_a_probe_leaves_the_message_and_a_matched_probe_takes_it(comm):
    from ompy import MPI

    status = MPI.Status()
    if comm.rank == 0:
        # They are matched in another order, and nothing says that a send ends before its match.
        contents = [pattern(tag * 100) for tag in (4, 5, 6)]
        requests = [comm.Isend(content, 1, tag) for tag, content in enumerate(contents, 4)]
        requests.append(comm.isend({"six": 6}, 1, 7))
        MPI.Request.Waitall(requests)
    else:
        assert comm.Probe(0, 5, status) is True
        assert (status.source, status.tag, status.count) == (0, 5, 500)
        while not comm.Iprobe(0, 6, status):
            pass
        assert status.count == 600
        message = comm.Mprobe(0, 4, status)
        assert message
        assert status.count == 400
        got = numpy.empty(400, "B")
        # The message is the handle's alone: whoever else looks finds the next one.
        assert comm.Mprobe(0, MPI.ANY_TAG, status).Irecv(numpy.empty(500, "B")).Wait()
        assert status.tag == 5
        message.Recv(got)
        assert (got == pattern(400)).all()
        assert not message
        comm.Recv(numpy.empty(600, "B"), 0, 6)
        message = comm.mprobe()
        assert message.recv() == {"six": 6}
        assert comm.improbe() is None


@pytest.mark.ompy(2)
def test_persistent_requests_start_again_and_again(comm):
    from ompy import MPI

    buffer = numpy.empty(1000, "i")
    if comm.rank == 0:
        request = comm.Ssend_init(buffer, 1, 2)
    else:
        request = comm.Recv_init(buffer, 0, 2)
    for turn in range(20):
        buffer[:] = turn if comm.rank == 0 else -1
        MPI.Prequest.Startall([request])
        request.Wait()
        assert (buffer == turn).all()
        assert request
        # An inactive request is done already.
        assert request.Test()
    request.Free()
    assert not request


@pytest.mark.ompy(2)
def test_partitioned_operations_belong_together_in_the_order_of_their_initialisation(comm):
    count = 5
    blocks = [numpy.full(4, number + 1.0) if comm.rank == 0 else numpy.zeros(4) for number in range(count)]
    other = numpy.full(4, -1.0)
    if comm.rank == 0:
        sends = [comm.Psend_init(block, 2, 1, 5) for block in blocks]
        apart = comm.Psend_init(other, 2, 1, 6)
        for _ in range(3):
            for send in (apart, *reversed(sends)):
                send.Start()
                send.Pready_range(0, 1)
            for send in (apart, *sends):
                send.Wait()
    else:
        apart = comm.Precv_init(other, 2, 0, 6)
        receives = [comm.Precv_init(block, 2, 0, 5) for block in blocks]
        for _ in range(3):
            for receive in (receives[2], receives[0], apart, *receives[3:], receives[1]):
                receive.Start()
            for receive in (apart, *receives):
                receive.Wait()
            assert [block[0] for block in blocks] == [1, 2, 3, 4, 5]
            assert other[0] == -1
            for block in blocks:
                block[:] = 0
    comm.Barrier()


@pytest.mark.ompy(2)
def test_partitions_are_sent_when_the_last_is_ready(comm):
    from ompy import MPI

    partitions, each = 8, 100
    buffer = numpy.zeros(partitions * each, "i")
    if comm.rank == 0:
        request = comm.Psend_init(buffer, partitions, 1, 3)
        for turn in range(3):
            request.Start()
            for partition in reversed(range(partitions)):
                buffer[partition * each : (partition + 1) * each] = turn * 10 + partition
                request.Pready(partition)
            with pytest.raises(MPI.Exception, match="ready already"):
                request.Pready(0)
            request.Wait()
    else:
        request = comm.Precv_init(buffer, partitions, 0, 3)
        for turn in range(3):
            request.Start()
            while not request.Parrived(partitions - 1):
                pass
            request.Wait()
            assert (buffer.reshape(partitions, each)[:, 0] == numpy.arange(partitions) + turn * 10).all()
    request.Free()


@pytest.mark.ompy(2)
def test_partitioned_messages_do_not_meet_ordinary_ones(comm):
    from ompy import MPI

    if comm.rank == 0:
        request = comm.Psend_init(bytearray(b"part"), 1, 1, 0)
        request.Start()
        request.Pready(0)
        comm.Send(b"else", 1, 0)
    else:
        plain, part = bytearray(4), bytearray(4)
        comm.Recv(plain, MPI.ANY_SOURCE, MPI.ANY_TAG)
        assert plain == b"else"
        request = comm.Precv_init(part, 1, 0, 0)
        request.Start()
    request.Wait()
    request.Free()
    if comm.rank == 1:
        assert part == b"part"


@pytest.mark.ompy(2)
def test_a_receive_can_be_cancelled_and_the_message_goes_to_the_next(comm):
    from ompy import MPI

    if comm.rank == 1:
        status = MPI.Status()
        request = comm.Irecv(bytearray(10), 0, 9)
        request.Cancel()
        request.Wait(status)
        assert status.Is_cancelled()
        comm.Send(b"go", 0)
        got = bytearray(3)
        comm.Recv(got, 0, 9)
        assert got == b"yes"
    else:
        comm.Recv(bytearray(2), 1)
        comm.Send(b"yes", 1, 9)


@pytest.mark.ompy(1)
def test_buffered_messages_share_the_attached_memory(comm):
    from ompy import MPI

    memory = bytearray(1000 + MPI.BSEND_OVERHEAD)
    MPI.Attach_buffer(memory)
    with pytest.raises(MPI.Exception, match="attached already"):
        MPI.Attach_buffer(memory)
    first = bytearray(b"x" * 700)
    comm.Bsend(first, 0, 1)
    # Copied: the program may use its memory at once.
    first[:] = b"y" * 700
    got = bytearray(700)
    comm.Recv(got, 0, 1)
    assert got == b"x" * 700
    MPI.Flush_buffer()
    MPI.Iflush_buffer().Wait()
    with pytest.raises(MPI.Exception, match="does not fit") as caught:
        comm.Bsend(bytearray(5000), 0, 1)
    assert caught.value.Get_error_class() == MPI.ERR_BUFFER
    assert MPI.Detach_buffer() is memory
    with pytest.raises(MPI.Exception, match="no buffer is attached"):
        comm.Bsend(b"a", 0, 1)


@pytest.mark.ompy(2)
def test_a_communicator_has_a_buffer_of_its_own(comm):
    from ompy import MPI

    own = comm.Dup()
    own.Attach_buffer(MPI.BUFFER_AUTOMATIC)
    if own.rank == 0:
        own.bsend(list(range(1000)), 1)
        own.Ibsend(b"abc", 1).Wait()
        own.Flush_buffer()
    else:
        assert own.recv(source=0) == list(range(1000))
        got = bytearray(3)
        own.Recv(got, 0)
        assert got == b"abc"
    assert own.Detach_buffer() == MPI.BUFFER_AUTOMATIC
    own.Free()


@pytest.mark.ompy(2, mca={"btl": "self,sm", "mpi_spin_us": "0", "mpi_watch_us": "1e6"})
def test_a_wait_that_watches_memory_sees_a_message_come(comm):
    """It would sleep when it has watched for a second, and be woken."""
    from ompy.core import progress

    turns, got, before = 20, numpy.zeros(1), progress.counters()["sleeps"]
    for turn in range(turns):
        if comm.rank == turn % 2:
            comm.Send(numpy.full(1, float(turn)), 1 - comm.rank)
        else:
            comm.Recv(got, 1 - comm.rank)
            assert got[0] == turn
    assert progress.counters()["sleeps"] - before < turns // 4


@pytest.mark.ompy(2, mca={"btl": "self,sm", "btl_sm_single_copy": "cma"})
def test_what_was_received_leaves_room_in_the_attached_buffer(comm):
    """Rank 0 hears of it by its own looking, as it makes no other call between."""
    from late_signals import pids, told

    from ompy import MPI

    processes = pids(comm)
    length = 300_000
    if comm.rank == 0:
        MPI.Attach_buffer(bytearray(length + MPI.BSEND_OVERHEAD))
        for number in range(10):
            comm.Bsend(bytes([number]) * length, 1)
            told()
        MPI.Detach_buffer()
    else:
        data = bytearray(length)
        for number in range(10):
            comm.Recv(data, 0)
            assert data == bytes([number]) * length
            os.kill(processes[0], signal.SIGUSR1)
