"""Blocking receives that wait (MPI-4.1, 3.2.4 and 3.5): messages of every length, wildcards, order, and what interrupts them.

A receive that waits when its message comes takes another way than one that finds it there: rank 1 sends only when it is told
to, by a message that rank 0 sends just before it receives.
"""

import gc
import os
import signal
import threading

import numpy as np
import pytest

GO, DATA, OTHER = 1, 2, 3
# Empty, one line, one ring message, and what is announced first and fetched or sent in fragments.
LENGTHS = [0, 8, 1000, 20_000, 300_000]


def pattern(length, seed=0):
    return (np.arange(length, dtype=np.uint32) * 7 + seed).astype(np.uint8)


def is_asleep(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "S"


def give_up(*_):
    raise TimeoutError("enough")


@pytest.mark.ompy(2)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("wild", [False, True])
def test_a_receive_that_waits_gets_the_message_and_its_status(length, wild):
    from ompy import MPI

    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        status = MPI.Status()
        received = np.zeros(length + 5, dtype=np.uint8)
        comm.send(None, 1, GO)
        comm.Recv(received, MPI.ANY_SOURCE if wild else 1, MPI.ANY_TAG if wild else DATA, status)
        assert (received[:length] == pattern(length)).all()
        assert not received[length:].any()
        assert (status.Get_source(), status.Get_tag(), status.Get_count(MPI.BYTE)) == (1, DATA, length)
    else:
        comm.recv(source=0, tag=GO)
        comm.Send(pattern(length), 0, DATA)


@pytest.mark.ompy(2)
@pytest.mark.parametrize("length", LENGTHS[1:])
def test_a_message_that_is_too_long_fills_what_there_is_and_is_an_error(length):
    from ompy import MPI

    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        received = np.zeros(length, dtype=np.uint8)
        comm.send(None, 1, GO)
        with pytest.raises(MPI.Exception, match=f"message of {length} bytes.*holds {length // 2} bytes") as raised:
            comm.Recv(received[: length // 2], 1, DATA)
        assert raised.value.Get_error_class() == MPI.ERR_TRUNCATE
        assert (received[: length // 2] == pattern(length)[: length // 2]).all()
        assert not received[length // 2 :].any()
        assert comm.recv(source=1, tag=OTHER) == "after"
    else:
        comm.recv(source=0, tag=GO)
        comm.Send(pattern(length), 0, DATA)
        comm.send("after", 0, OTHER)


@pytest.mark.ompy(2)
@pytest.mark.parametrize("value", [None, {"a": [1.5, "text"]}, b"x" * 300_000, np.arange(50_000)], ids=type)
def test_an_object_that_is_waited_for_arrives(value):
    from ompy import MPI

    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        status = MPI.Status()
        comm.send(None, 1, GO)
        received = comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
        assert np.array_equal(received, value)
        assert (status.Get_source(), status.Get_tag()) == (1, DATA)
    else:
        comm.recv(source=0, tag=GO)
        comm.send(value, 0, DATA)


@pytest.mark.ompy(2)
def test_older_receives_that_match_come_first():
    """Two posted receives of any tag, then a blocking one of the same: messages are theirs in this order."""
    from ompy import MPI

    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        posted = [np.zeros(1, "i") for _ in range(2)]
        requests = [comm.Irecv(posted[0], MPI.ANY_SOURCE, MPI.ANY_TAG), comm.Irecv(posted[1], 1, DATA)]
        last = np.zeros(1, "i")
        comm.send(None, 1, GO)
        comm.Recv(last, 1, MPI.ANY_TAG)
        MPI.Request.Waitall(requests)
        assert [int(posted[0][0]), int(posted[1][0]), int(last[0])] == [10, 11, 12]
    else:
        comm.recv(source=0, tag=GO)
        for value in (10, 11, 12):
            comm.Send(np.array([value], "i"), 0, DATA)


@pytest.mark.ompy(2)
def test_what_another_thread_receives_does_not_disturb_a_receive_that_waits():
    from ompy import MPI

    comm = MPI.COMM_WORLD
    rounds = 200
    if comm.rank == 0:
        found = {}

        def receive(tag):
            block = np.zeros(1, "i")
            values = []
            for _ in range(rounds):
                comm.Recv(block, 1, tag)
                values.append(int(block[0]))
            found[tag] = values

        threads = [threading.Thread(target=receive, args=(tag,), daemon=True) for tag in (DATA, OTHER)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(40)
            assert not thread.is_alive(), "a thread is still waiting"
        assert found == {DATA: list(range(rounds)), OTHER: list(range(1000, 1000 + rounds))}
    else:
        for number in range(rounds):
            comm.Send(np.array([number], "i"), 0, DATA)
            comm.Send(np.array([1000 + number], "i"), 0, OTHER)


@pytest.mark.ompy(2)
@pytest.mark.parametrize("length", [8, 300_000])
def test_an_interrupted_receive_leaves_its_message_to_the_next(length):
    """A signal handler ends the wait by an exception: the message that comes then is not written to the old memory."""
    from ompy import MPI
    from ompy.mca.pml import chosen
    from ompy.runtime.identity import world_communicator

    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        before = signal.signal(signal.SIGUSR1, give_up)
        abandoned = np.zeros(length, dtype=np.uint8)
        received = np.zeros(length, dtype=np.uint8)

        def receive():
            comm.send(os.getpid(), 1, GO)
            comm.Recv(abandoned, 1, DATA)

        try:
            with pytest.raises(TimeoutError, match="enough"):
                receive()
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert chosen().dump(world_communicator())["posted"] == []
        comm.send(None, 1, GO)
        comm.Recv(received, 1, DATA)
        assert not abandoned.any()
        assert (received == pattern(length)).all()
    else:
        waiter = comm.recv(source=0, tag=GO)
        while not is_asleep(waiter):
            pass
        os.kill(waiter, signal.SIGUSR1)
        comm.recv(source=0, tag=GO)
        comm.Send(pattern(length), 0, DATA)


@pytest.mark.ompy(2)
@pytest.mark.parametrize("objects", [False, True])
def test_a_message_that_comes_while_a_receive_collects_garbage_is_found(objects):
    """A communicator's first receive makes what its wait is shown by: a collection may run then, and with it anything."""
    from ompy import MPI

    world = MPI.COMM_WORLD
    waiter = world.bcast(os.getpid())
    thresholds = gc.get_threshold()

    def arrive(phase, info):
        if armed and phase == "start":
            armed.clear()
            world.send(None, 1, GO)
            # It comes, but not where the collection runs amid the engine's own work.
            for _ in range(100_000):
                if comm.Iprobe(1):
                    break

    armed = []
    gc.callbacks.append(arrive)
    for early in range(10):
        comm = world.Dup()
        if world.rank == 1:
            while not world.Iprobe(0, GO) and not is_asleep(waiter):
                pass
            comm.send("text", 0) if objects else comm.Send(pattern(8), 0)
        else:
            received = np.zeros(8, dtype=np.uint8)
            gc.disable()
            gc.collect()
            gc.set_threshold(300)
            kept = []
            while gc.get_count()[0] < 301 - early:
                kept.append([])
            armed.append(early)
            gc.enable()
            if objects:
                received = comm.recv(source=1)
            else:
                comm.Recv(received, 1)
            gc.set_threshold(*thresholds)
            if armed:
                world.send(None, 1, GO)
                armed.clear()
            assert received == "text" if objects else (received == pattern(8)).all()
        if world.rank == 1:
            world.recv(source=0, tag=GO)
        comm.Free()
    gc.callbacks.remove(arrive)


@pytest.mark.ompy(2)
def test_many_pairs_of_source_and_tag_keep_apart():
    """Queues of pairs that are not used any more are kept, and given up when there are many."""
    from ompy import MPI

    comm = MPI.COMM_WORLD
    tags = list(range(10, 3000))
    if comm.rank == 0:
        blocks = np.zeros(len(tags), "i")
        for turn in range(2):
            requests = [comm.Irecv(blocks[at : at + 1], 1, tag) for at, tag in enumerate(tags)]
            comm.send(None, 1, GO)
            MPI.Request.Waitall(requests)
            assert (blocks == np.array(tags) + turn).all()
    else:
        for turn in range(2):
            comm.recv(source=0, tag=GO)
            for tag in reversed(tags):
                comm.Send(np.array([tag + turn], "i"), 0, tag)
