"""MPI_THREAD_MULTIPLE (MPI-4.1, 11.6): Python threads of one rank communicate at once."""

import random
import sys
import threading
import time

import numpy as np
import pytest


def run_in_threads(count, work):
    """Runs `work(number)` in so many threads; the first failure is this one's."""
    failures = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
        assert not thread.is_alive(), "a thread is still waiting"
    if failures:
        raise failures[0]


@pytest.mark.ompy(2, mca={"btl": "self,sm"})
def test_threads_meet_a_peer_and_talk_at_once_over_shared_memory():
    talk_in_threads(300)


@pytest.mark.ompy(2, mca={"btl": "self,zmq"})
def test_threads_meet_a_peer_and_talk_at_once_over_a_network():
    talk_in_threads(30)


@pytest.mark.ompy(3)
def test_threads_that_all_test_and_none_waits_get_on():
    from ompy import MPI

    comms = [MPI.COMM_WORLD.Dup() for _ in range(3)]

    def work(number):
        comm = comms[number]
        for turn in range(60):
            got = np.zeros(comm.size, "i")
            request = comm.Iallgather(np.full(1, turn, "i"), got)
            while not request.Test():
                pass
            assert (got == turn).all()

    run_in_threads(3, work)


def talk_in_threads(rounds):
    from ompy import MPI

    comm = MPI.COMM_WORLD
    rank = comm.Get_rank()

    def work(tag):
        block = np.zeros(1000, "i")
        for number in range(rounds):
            if rank == 0:
                block[:] = number * 10 + tag
                comm.Send(block, 1, tag)
                comm.Recv(block, 1, tag)
                assert (block == number * 10 + tag + 1).all()
            else:
                comm.Recv(block, 0, tag)
                assert (block == number * 10 + tag).all()
                block += 1
                comm.Send(block, 0, tag)

    run_in_threads(5, work)


@pytest.mark.ompy(1)
def test_one_thread_waits_for_what_another_sends_to_the_same_rank():
    from ompy import MPI

    comm = MPI.COMM_SELF

    def work(number):
        if number == 0:
            for count in range(200):
                assert comm.recv(source=0, tag=5) == count
        else:
            for count in range(200):
                comm.send(count, 0, tag=5)

    run_in_threads(2, work)


@pytest.mark.ompy(2, mca={"btl": "self,zmq"})
def test_threads_that_send_strided_data_over_a_transport_in_python_do_not_mix_it():
    from ompy import MPI

    comm = MPI.COMM_WORLD
    sizes = [64, 700, 3000, 150]
    types = [MPI.DOUBLE.Create_vector(size, 1, 2).Commit() for size in sizes]
    rounds = 150

    def work(number):
        block = np.zeros(2 * sizes[number])
        for turn in range(rounds):
            if comm.rank == 0:
                block[::2] = 1000 * number + turn
                comm.Send([block, 1, types[number]], 1, number)
            else:
                comm.Recv([block, sizes[number], MPI.DOUBLE], 0, number)
                assert (block[: sizes[number]] == 1000 * number + turn).all()

    sys.setswitchinterval(1e-6)
    run_in_threads(4, work)


@pytest.mark.ompy(2, mca={"btl": "self,zmq"})
def test_buffered_sends_of_several_threads_do_not_share_a_gap():
    from ompy import MPI

    comm = MPI.COMM_WORLD
    rounds, length = 60, 20_000
    MPI.Attach_buffer(bytearray(4 * rounds * (8 * length + MPI.BSEND_OVERHEAD)))

    def work(number):
        block = np.zeros(length)
        for turn in range(rounds):
            if comm.rank == 0:
                comm.Bsend(np.full(length, 1000.0 * number + turn), 1, number)
            else:
                comm.Recv(block, 0, number)
                assert (block == 1000 * number + turn).all()

    sys.setswitchinterval(1e-6)
    run_in_threads(4, work)
    comm.Barrier()
    MPI.Detach_buffer()


@pytest.mark.ompy(2)
@pytest.mark.parametrize("what", ["complete", "cancel"])
def test_a_request_that_another_thread_ends_wakes_its_waiter(what):
    """A sleeper looks again by itself only after ten seconds here."""
    from ompy import MPI
    from ompy.core.progress import configure, counters

    configure(spin_us=0, watch_us=0, yield_us=0, backstop_ms=10_000)
    rounds = 5
    begun = time.monotonic()
    for _ in range(rounds):
        request = MPI.Grequest.Start() if what == "complete" else MPI.COMM_WORLD.Irecv(bytearray(1), MPI.ANY_SOURCE, 99)
        end = request.Complete if what == "complete" else request.Cancel
        waits, sleeps = counters()["waits"], counters()["sleeps"]

        def work(_, end=end, waits=waits, sleeps=sleeps):
            while counters()["waits"] == waits or counters()["sleeps"] == sleeps:
                time.sleep(0)
            end()

        thread = threading.Thread(target=work, args=(0,))
        thread.start()
        request.Wait()
        thread.join()
    configure()
    assert time.monotonic() - begun < 2 * rounds
    MPI.COMM_WORLD.Barrier()


@pytest.mark.ompy(1, mca={"osc": "sm"})
def test_threads_attach_memory_to_one_window_and_detach_it_in_shared_memory():
    attach_in_threads()


@pytest.mark.ompy(1, mca={"osc": "pt2pt"})
def test_threads_attach_memory_to_one_window_and_detach_it_over_messages():
    attach_in_threads()


def attach_in_threads():
    """Each has memory of its own between that of the others."""
    from ompy import MPI

    count, rounds = 4, 4000
    win = MPI.Win.Create_dynamic()
    parts = np.zeros((count * 1000, 4))
    interval = sys.getswitchinterval()

    def work(number):
        dice, attached = random.Random(number), set()
        for _ in range(rounds):
            which = number + count * dice.randrange(1000)
            (win.Detach if which in attached else win.Attach)(parts[which])
            attached ^= {which}
        for which in attached:
            win.Detach(parts[which])

    sys.setswitchinterval(1e-6)
    try:
        run_in_threads(count, work)
    finally:
        sys.setswitchinterval(interval)
    for part in parts:
        win.Attach(part)
    win.Free()
