"""pml/rpi over the three versions of rMPI on the simulated Raw chip: the same checks for each."""

from __future__ import annotations

import random
import signal

import numpy
import pytest
from ompy_raw.diagnosis import WORDS_OF

from ompy.core.progress_source import ProgressSource, register_source, unregister_source

RAW = {"pml": "rpi", "rpi_base_verbose": -1}
# Around the first packet's payload (24, 26 or 27 words), several packets, and bytes that are no whole words.
SIZES = (0, 1, 2, 3, 4, 5, 95, 96, 97, 104, 105, 108, 109, 4096, 4099)


def pattern(size, seed=0):
    return ((numpy.arange(size) * 7 + seed) % 251).astype("B")


def every_mode_delivers_every_size(comm):
    from ompy import MPI

    MPI.Attach_buffer(None)
    for mode in ("Send", "Ssend", "Rsend", "Bsend"):
        for size in SIZES:
            if comm.rank == 0:
                comm.Recv(bytearray(0), 1, 1)
                getattr(comm, mode)(pattern(size, size), 1, 5)
            elif comm.rank == 1:
                got = numpy.full(size + 3, 255, "B")
                request = comm.Irecv(got, 0, 5)
                comm.Send(bytearray(0), 0, 1)
                status = MPI.Status()
                request.Wait(status)
                assert (status.source, status.tag, status.count) == (0, 5, size)
                assert (got[:size] == pattern(size, size)).all()
                assert (got[size:] == 255).all()
    MPI.Detach_buffer()


def receives_match_in_order_and_by_wildcards(comm):
    from ompy import MPI

    status = MPI.Status()
    if comm.rank == 0:
        for number in range(20):
            comm.Send(numpy.array([number], "i"), 1, number % 3)
        return
    if comm.rank != 1:
        return
    value = numpy.zeros(1, "i")
    # One tag out of the middle first, from messages that have all arrived unexpected.
    for expected in (2, 5, 8):
        comm.Recv(value, 0, 2)
        assert value[0] == expected
    seen = {0: [], 1: [], 2: [2, 5, 8]}
    for turn in range(17):
        comm.Recv(value, MPI.ANY_SOURCE if turn % 2 else 0, MPI.ANY_TAG, status)
        assert status.source == 0
        seen[status.tag].append(int(value[0]))
    assert seen == {tag: list(range(tag, 20, 3)) for tag in range(3)}


def a_message_that_is_too_long_is_truncated(comm):
    from ompy import MPI

    for early in (True, False):
        if comm.rank == 0:
            if not early:
                comm.recv(source=1)
            comm.Send(pattern(500), 1)
            if early:
                comm.send(None, 1)
        elif comm.rank == 1:
            got = numpy.full(100, 255, "B")
            if early:
                comm.Probe(0)
                with pytest.raises(MPI.Exception) as raised:
                    comm.Recv(got[:90], 0)
                comm.recv(source=0)
            else:
                request = comm.Irecv(got[:90], 0)
                comm.send(None, 0)
                with pytest.raises(MPI.Exception) as raised:
                    request.Wait()
            assert raised.value.Get_error_class() == MPI.ERR_TRUNCATE
            assert "500 bytes" in str(raised.value)
            assert (got[:90] == pattern(90)).all()
            assert (got[90:] == 255).all()


def probes_see_and_take_messages(comm):
    from ompy import MPI

    status = MPI.Status()
    if comm.rank == 0:
        comm.Send(pattern(33), 1, 7)
        comm.Send(pattern(44), 1, 8)
    elif comm.rank == 1:
        comm.Probe(MPI.ANY_SOURCE, 8, status)
        assert (status.source, status.count) == (0, 44)
        message = comm.Mprobe(0, MPI.ANY_TAG, status)
        assert status.tag == 7
        assert not comm.Iprobe(0, 7)
        got = numpy.zeros(33, "B")
        message.Recv(got)
        assert (got == pattern(33)).all()
        comm.Recv(numpy.zeros(44, "B"), 0, 8)
        assert comm.Improbe(0, 8) is None


def a_receive_can_be_cancelled_until_it_is_matched(comm):
    from ompy import MPI

    status = MPI.Status()
    request = comm.Irecv(numpy.zeros(1), comm.rank, 3)
    request.Cancel()
    request.Wait(status)
    assert status.Is_cancelled()
    request = comm.Irecv(numpy.zeros(1), comm.rank, 3)
    comm.Send(numpy.ones(1), comm.rank, 3)
    request.Cancel()
    request.Wait(status)
    assert not status.Is_cancelled()


def layouts_are_packed_and_unpacked(comm):
    from ompy import MPI

    column = MPI.INT.Create_vector(40, 1, 5).Commit()
    square = numpy.arange(200, dtype="i").reshape(40, 5)
    if comm.rank == 0:
        comm.Send([square, 1, column], 1)
    elif comm.rank == 1:
        got = numpy.zeros((40, 5), "i")
        comm.Recv([got, 1, column], 0)
        assert (got[:, 0] == square[:, 0]).all()
        assert not got[:, 1:].any()
    column.Free()


def communicators_are_kept_apart(comm):
    other = comm.Dup()
    if comm.rank == 0:
        other.send("other", 1)
        comm.send("first", 1)
    elif comm.rank == 1:
        assert comm.recv(source=0) == "first"
        assert other.recv(source=0) == "other"
    other.Free()


def persistent_requests_and_objects_of_any_size(comm):
    value = numpy.zeros(50, "i")
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    requests = [comm.Recv_init(value, left), comm.Ssend_init(numpy.full(50, comm.rank, "i"), right)]
    for _ in range(3):
        value[:] = -1
        for request in requests:
            request.Start()
        for request in requests:
            request.Wait()
        assert (value == left).all()
    things = [{"rank": comm.rank, "data": pattern(size, comm.rank)} for size in (0, 100, 3000)]
    pending = [comm.isend(thing, right, tag) for tag, thing in enumerate(things)]
    for tag in (2, 0, 1):
        thing = comm.recv(source=left, tag=tag)
        assert thing["rank"] == left
        assert (thing["data"] == pattern(len(things[tag]["data"]), left)).all()
    for request in pending:
        request.wait()


def messages_of_random_sizes_cross(comm, seed):
    rng = random.Random(seed)
    plan = [(rng.randrange(comm.size), rng.randrange(comm.size), rng.randrange(4), rng.randrange(600)) for _ in range(60)]
    receives, sends = [], []
    for number, (source, dest, tag, size) in enumerate(plan):
        if comm.rank == dest:
            got = numpy.zeros(size, "B")
            receives.append((number, got, comm.Irecv(got, source, tag)))
        if comm.rank == source:
            sends.append(comm.Isend(pattern(size, number), dest, tag))
    for request in sends:
        request.Wait()
    for number, got, request in receives:
        request.Wait()
        assert (got == pattern(len(got), number)).all(), number


def everything(comm, seed):
    every_mode_delivers_every_size(comm)
    receives_match_in_order_and_by_wildcards(comm)
    a_message_that_is_too_long_is_truncated(comm)
    probes_see_and_take_messages(comm)
    a_receive_can_be_cancelled_until_it_is_matched(comm)
    layouts_are_packed_and_unpacked(comm)
    communicators_are_kept_apart(comm)
    persistent_requests_and_objects_of_any_size(comm)
    messages_of_random_sizes_cross(comm, seed)
    comm.Barrier()
    entries = comm.allgather(comm.rank)
    assert entries == list(range(comm.size))


@pytest.mark.ompy(3, mca=RAW | {"rpi": "raw_v1"})
def test_version_1_does_what_mpi_asks_for(comm, seed):
    everything(comm, seed)


@pytest.mark.ompy(3, mca=RAW | {"rpi": "raw_v2"})
def test_version_2_does_what_mpi_asks_for(comm, seed):
    everything(comm, seed)


@pytest.mark.ompy(3, mca=RAW | {"rpi": "raw_v3"})
def test_version_3_does_what_mpi_asks_for(comm, seed):
    from ompy.mca.selection import chosen_modules

    everything(comm, seed)
    [rpi] = chosen_modules["rpi"]
    assert rpi.handler_state == "BETWEEN_PACKETS"
    assert rpi.dump()["posted"] == []


@pytest.mark.ompy(2, mca=RAW | {"rpi": "raw_v3"})
def test_queues_are_shown_with_ranks_of_the_communicator(comm):
    from ompy.mca.pml import chosen
    from ompy.runtime.identity import world_communicator

    if comm.rank == 0:
        comm.Send(pattern(10), 1, 4)
        comm.Send(pattern(0), 1, 5)
    else:
        request = comm.Irecv(numpy.zeros(1), 0, 9)
        comm.Recv(bytearray(0), 0, 5)
        assert chosen().dump(world_communicator()) == {"posted": [(0, 9)], "unexpected": [(0, 4, 10)]}
        comm.Recv(numpy.zeros(10, "B"), 0, 4)
        request.Cancel()
        request.Wait()


@pytest.mark.ompy(2)
def test_it_serves_only_where_it_is_named(comm):
    from ompy.mca.pml import chosen

    assert chosen().name == "ob1"


@pytest.mark.ompy(2, mca=RAW | {"rpi": "raw_v3", "coll": "sm,basic"})
def test_collectives_through_shared_memory_keep_out(comm):
    from ompy.mca.selection import verdicts

    # The verdict on the latest communicator is kept: one of more than this process.
    copy = comm.Dup()
    [verdict] = [verdict for verdict in verdicts("coll") if verdict.component == "sm"]
    assert "time is simulated" in verdict.reason
    copy.Free()


class EndsWait(ProgressSource):
    """Has something to do in every round, and ends the program's wait in the first that finds the other tile in a wait."""

    def __init__(self, end, waits):
        self.end = end
        self.waits = waits

    def progress(self):
        if self.end is not None and any(WORDS_OF[activity] == "waits for a word" for _, activity, _, _ in self.waits()):
            self.end, end = None, self.end
            end()
        return 1


@pytest.mark.ompy(2, mca=RAW | {"rpi": "raw_v1"})
def test_a_wait_that_another_source_is_about_to_end_is_none_on_the_chip(comm):
    from ompy import MPI
    from ompy.mca.selection import chosen_modules

    word = numpy.zeros(1, "i")
    if comm.rank == 1:
        comm.Recv(word, 0, 3)
        comm.Send(word, 0, 4)
        return
    # Were this tile's wait on the chip too, with a receive posted, nobody could go on there.
    answer = comm.Irecv(word, 1, 4)
    other = MPI.Grequest.Start(lambda status: None, lambda: None, lambda complete: None)
    source = EndsWait(other.Complete, chosen_modules["rpi"][0].tile.chip.waits)
    register_source(source)
    other.Wait()
    unregister_source(source)
    comm.Send(numpy.zeros(1, "i"), 1, 3)
    answer.Wait()


class Late(Exception):
    """What the signal handler raises."""


def sends_that_signals_interrupt_leave_whole_messages(comm, rng):
    from ompy import MPI

    def raise_late(*_):
        raise Late

    status = MPI.Status()
    words = 1250
    ended_early = 0
    if comm.rank == 1:
        signal.signal(signal.SIGALRM, raise_late)
    for number in range(30):
        memory = numpy.full(words, number, "i")
        if comm.rank == 0:
            # The first may have been ended before it had begun.
            while True:
                comm.Recv(memory, 1, MPI.ANY_TAG, status)
                assert (memory == number).all()
                if status.tag == 5:
                    break
        elif comm.rank == 1:
            kept = memory.copy()
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.choice([1e-5, 1e-4, 1e-3]))
                try:
                    comm.Send(memory, 0, 4)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Late:
                ended_early += 1
            memory[:] = -1
            comm.Send(kept, 0, 5)
        comm.Barrier()
    assert ended_early or comm.rank != 1


@pytest.mark.ompy(2, mca=RAW | {"rpi": "raw_v2"})
def test_sends_of_version_2_that_signals_interrupt_leave_whole_messages(comm, ompy_rng):
    sends_that_signals_interrupt_leave_whole_messages(comm, ompy_rng)


@pytest.mark.ompy(2, mca=RAW | {"rpi": "raw_v3"})
def test_sends_of_version_3_that_signals_interrupt_leave_whole_messages(comm, ompy_rng):
    sends_that_signals_interrupt_leave_whole_messages(comm, ompy_rng)
