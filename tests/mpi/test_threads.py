"""MPI_THREAD_MULTIPLE (MPI-4.1, 11.6): Python threads of one rank communicate at once."""

import threading

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
