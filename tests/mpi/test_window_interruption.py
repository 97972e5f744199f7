"""Calls that wait for a window's other ranks, ended by an exception from a signal handler: the window serves on."""

import os
import random
import signal
import threading

import numpy as np
import pytest
from late_signals import Late, pids, told, until_late

from ompy import MPI

BY_MESSAGES = {"osc": "pt2pt"}
DIRECTLY = {"osc": "sm"}
BY_REMOTE_ACCESS = {"osc": "rdma"}


def window_of(comm, dynamic):
    """A window, its memory, and where rank 1's begins."""
    memory = np.zeros(4)
    if not dynamic:
        return MPI.Win.Create(memory, 8, comm=comm), memory, 0
    win = MPI.Win.Create_dynamic(comm=comm)
    win.Attach(memory)
    return win, memory, comm.bcast(MPI.Get_address(memory), 1)


def locks(comm):
    """Rank 1 holds its own; rank 2 shares it with rank 1 although rank 0 has wanted it alone before."""
    win, _, _ = window_of(comm, False)
    for ask in (lambda: win.Lock(1), lambda: win.Lock(1, MPI.LOCK_SHARED), win.Lock_all):
        if comm.rank == 1:
            win.Lock(1)
        comm.Barrier()
        if comm.rank == 0:
            until_late(ask)
        comm.Barrier()
        if comm.rank == 1:
            win.Unlock(1)
            win.Lock(1)
            win.Unlock(1)
        comm.Barrier()
        if comm.rank == 1:
            win.Lock(1, MPI.LOCK_SHARED)
        comm.Barrier()
        if comm.rank == 0:
            until_late(lambda: win.Lock(1))
        comm.Barrier()
        if comm.rank == 2:
            win.Lock(1, MPI.LOCK_SHARED)
            win.Unlock(1)
        comm.Barrier()
        if comm.rank == 1:
            win.Unlock(1)
        # All in turn, he too.
        win.Lock(1)
        win.Unlock(1)
        comm.Barrier()
    win.Free()


@pytest.mark.ompy(3, mca=BY_MESSAGES)
def test_a_lock_over_messages_that_was_waited_for_in_vain_is_nobody_s(comm):
    locks(comm)


@pytest.mark.ompy(3, mca=DIRECTLY)
def test_a_lock_in_shared_memory_that_was_waited_for_in_vain_is_nobody_s(comm):
    locks(comm)


@pytest.mark.ompy(2, mca=BY_REMOTE_ACCESS)
def test_a_lock_by_remote_access_that_an_exception_ends_is_given_back(comm):
    """It is waited for to its end: rank 1 gives it up when rank 0 has been interrupted."""
    win, _, _ = window_of(comm, False)
    holder = comm.bcast(os.getpid(), 1)
    told = []
    signal.signal(signal.SIGUSR1, lambda *_: told.append(True))

    def tell():
        os.kill(holder, signal.SIGUSR1)

    for ask in (lambda: win.Lock(1), lambda: win.Lock(1, MPI.LOCK_SHARED), win.Lock_all):
        if comm.rank == 1:
            win.Lock(1)
        comm.Barrier()
        if comm.rank == 0:
            until_late(ask, tell)
        else:
            while not told:
                comm.Iprobe()
            told.clear()
            win.Unlock(1)
        comm.Barrier()
        for owner in (0, 1):
            if comm.rank == 1:
                win.Lock(owner)
                win.Unlock(owner)
        comm.Barrier()
    win.Free()


def epochs(comm):
    """Start, an access that waits for the Post in its place, Wait, Fence and Free are called again, and wait for the same as
    before."""

    def access(win, base):
        if not started:
            win.Start(other)
            started.append(win)
        win.Get(np.empty(1), 1, base)

    for dynamic in (False, True):
        win, memory, base = window_of(comm, dynamic)
        first, other = (comm.Get_group().Incl([rank]) for rank in (0, 1))
        for value in (1.0, 2.0):
            if comm.rank == 0:
                started = []
                until_late(lambda win=win, base=base: access(win, base))
                comm.Barrier()
                access(win, base)
                win.Put(np.full(1, value), 1, base)
                win.Complete()
            else:
                comm.Barrier()
                win.Post(first)
                win.Wait()
                assert memory[0] == value
            if comm.rank == 1:
                win.Post(first)
                until_late(win.Wait)
                comm.Barrier()
                win.Wait()
                assert memory[1] == value
            else:
                comm.Barrier()
                win.Start(other)
                win.Put(np.full(1, value), 1, base + (8 if dynamic else 1))
                win.Complete()
        for value in (3.0, 4.0):
            if comm.rank == 0:
                until_late(win.Fence)
                if value == 3.0:  # no fence has opened an epoch yet
                    with pytest.raises(MPI.Exception) as caught:
                        win.Put(np.full(1, value), 1, base)
                    assert caught.value.Get_error_class() == MPI.ERR_RMA_SYNC
            comm.Barrier()
            win.Fence()
            if comm.rank == 0:
                win.Put(np.full(1, value), 1, base)
            win.Fence()
            assert comm.rank == 0 or memory[0] == value
        win.Fence(MPI.MODE_NOSUCCEED)
        if comm.rank == 0:
            until_late(win.Free)
        comm.Barrier()
        win.Free()


@pytest.mark.ompy(2, mca=BY_MESSAGES)
def test_an_epoch_over_messages_that_was_waited_for_in_vain_comes_all_the_same(comm):
    epochs(comm)


@pytest.mark.ompy(2, mca=DIRECTLY)
def test_an_epoch_in_shared_memory_that_was_waited_for_in_vain_comes_all_the_same(comm):
    epochs(comm)


@pytest.mark.ompy(2, mca=BY_REMOTE_ACCESS)
def test_an_epoch_by_remote_access_that_was_waited_for_in_vain_comes_all_the_same(comm):
    epochs(comm)


@pytest.mark.ompy(2, mca={"osc": "portals", "btl": "self,portals"})
def test_an_epoch_over_portals_that_was_waited_for_in_vain_comes_all_the_same(comm):
    epochs(comm)


@pytest.mark.ompy(2, mca=BY_REMOTE_ACCESS)
def test_what_a_thread_s_calls_on_a_window_keep_from_an_exception_is_that_thread_s_alone(comm):
    """Each of two threads is in a lock when the other one's is over."""
    win, _, _ = window_of(comm, False)
    waiting = threading.Thread(target=lambda: (win.Lock(0), win.Unlock(0)))
    if comm.rank == 1:
        win.Lock(0)
        win.Lock(1)
    comm.Barrier()
    if comm.rank == 0:
        waiting.start()
        freed = comm.Isend(b"", 1, 1)
        win.Lock(1)
        win.Unlock(1)
        freed.Wait()
        comm.Send(b"", 1, 2)
        waiting.join()
        until_late(lambda: comm.Recv(bytearray(1), 1, 3))
    else:
        comm.Recv(bytearray(1), 0, 1)
        win.Unlock(1)
        comm.Recv(bytearray(1), 0, 2)
        win.Unlock(0)
    comm.Barrier()
    win.Free()


@pytest.mark.ompy(2, mca={**BY_REMOTE_ACCESS, "btl": "self,zmq"})
def test_an_epoch_by_remote_access_that_an_exception_ends_is_over_for_its_target(comm):
    """What Complete waits for is waited for to its end: rank 1 comes to MPI again when rank 0 has been interrupted."""
    win, memory, _ = window_of(comm, False)
    target = comm.bcast(os.getpid(), 1)
    told = []
    signal.signal(signal.SIGUSR1, lambda *_: told.append(True))
    first, other = (comm.Get_group().Incl([rank]) for rank in (0, 1))
    for value in (1.0, 2.0):
        comm.Barrier()
        if comm.rank == 0:
            win.Start(other)
            win.Put(np.full(4, value), 1)
            until_late(win.Complete, lambda: os.kill(target, signal.SIGUSR1))
        else:
            win.Post(first)
            while not told:
                pass
            told.clear()
            win.Wait()
            assert (memory == value).all()
    win.Free()


@pytest.mark.ompy(2, mca=BY_MESSAGES)
def test_who_flushes_again_waits_for_what_an_exception_or_another_thread_has_left(comm, tmp_path):
    """Rank 1 is not inside MPI, so nothing that rank 0 orders is carried out."""
    win, memory, _ = window_of(comm, False)
    sign = comm.bcast(str(tmp_path / "may-go-on"))
    comm.Barrier()
    if comm.rank == 0:
        win.Lock(1, MPI.LOCK_SHARED, MPI.MODE_NOCHECK)
        win.Accumulate(np.ones(4), 1)
        for flush in (win.Flush_all, win.Flush_all, lambda: win.Flush(1)):
            until_late(flush)
        win.Accumulate(np.ones(4), 1)
        flushing = threading.Thread(target=win.Flush, args=(1,))
        flushing.start()
        until_late(lambda: win.Flush(1))
        open(sign, "w").close()
        win.Flush(1)
        flushing.join()
        win.Unlock(1)
    while not os.path.exists(sign):
        pass
    comm.Barrier()
    assert comm.rank == 0 or (memory == 2).all()
    win.Free()


@pytest.mark.ompy(2, mca=BY_MESSAGES)
def test_what_a_flush_that_an_exception_ends_would_have_told_the_next_one_tells(comm, tmp_path):
    """Rank 1, which alone knows what it has attached, is not inside MPI until the flush is over."""
    win = MPI.Win.Create_dynamic(comm=comm)
    for call in (win.Flush, win.Unlock):
        sign = comm.bcast(str(tmp_path / f"may-go-on-{call.__name__}"))
        outside = sign + "-outside"
        if comm.rank == 0:
            win.Lock(1)
        comm.Barrier()
        if comm.rank == 1:
            open(outside, "w").close()
        if comm.rank == 0:
            while not os.path.exists(outside):
                pass
            win.Put(np.ones(4), 1, 4096)
            until_late(lambda call=call: call(1))
            open(sign, "w").close()
            if call == win.Unlock:
                win.Lock(1)
            with pytest.raises(MPI.Exception) as caught:
                win.Flush(1)
            assert caught.value.Get_error_class() == MPI.ERR_RMA_RANGE
            win.Flush(1)
            win.Unlock(1)
        while not os.path.exists(sign):
            pass
        comm.Barrier()
    win.Free()


def putting(comm, sign):
    """Rank 1 is not inside MPI, so that its transport takes no more, until rank 0 has been called away."""
    win = MPI.Win.Allocate(1 << 20, comm=comm)
    data = bytearray(1 << 20)
    done, seen = [0], [-1]

    def handle(*_):
        if done == seen:
            raise Late
        seen[:] = done

    if comm.rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
    comm.Barrier()
    if comm.rank == 0:
        signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        try:
            while True:
                win.Put(data, 1)
                done[0] += 1
        except Late:
            signal.setitimer(signal.ITIMER_REAL, 0)
        open(sign, "w").close()
        data[:] = b"x" * len(data)
        win.Flush(1)
        win.Put(data, 1)
        win.Unlock(1)
    while not os.path.exists(sign):
        pass
    comm.Barrier()
    assert comm.rank == 0 or bytes(win) == b"x" * len(data)
    win.Free()


@pytest.mark.ompy(2, mca={**BY_REMOTE_ACCESS, "btl": "self,tcp"})
def test_an_access_that_tcp_does_not_take_can_be_interrupted(comm, tmp_path):
    putting(comm, comm.bcast(str(tmp_path / "may-go-on")))


@pytest.mark.ompy(2, mca={**BY_REMOTE_ACCESS, "btl": "self,zmq"})
def test_an_access_that_zmq_does_not_take_can_be_interrupted(comm, tmp_path):
    putting(comm, comm.bcast(str(tmp_path / "may-go-on")))


def interrupt(call, dice):
    """`call`, and a signal's exception at some moment about then, not after it."""
    armed = True

    def handle(*_):
        if armed:
            raise Late

    try:
        try:
            signal.signal(signal.SIGALRM, handle)
            signal.setitimer(signal.ITIMER_REAL, 1e-6 * dice.randrange(1, 15))
            call()
        finally:
            armed = False
    except Late:
        armed = False


def attaching(comm):
    """Attach and Detach have been done or have not, whenever the exception comes."""

    def is_attached(part):
        # As Attach says, which is done where it does not.
        try:
            win.Attach(part)
        except MPI.Exception:
            return True
        win.Detach(part)
        return False

    dice = random.Random(comm.rank)
    win = MPI.Win.Create_dynamic(comm=comm)
    parts = np.arange(400.0).reshape(100, 4)
    for part in parts[::2]:
        win.Attach(part)
    for _ in range(1500):
        part = parts[1 + 2 * dice.randrange(50)]
        interrupt(lambda part=part: win.Attach(part), dice)
        if not is_attached(part):
            win.Attach(part)
        interrupt(lambda part=part: win.Detach(part), dice)
        if is_attached(part):
            win.Detach(part)
    got = np.zeros(4)
    win.Lock(comm.rank)
    for number, part in enumerate(parts):
        if number % 2 == 0:
            win.Get(got, comm.rank, MPI.Get_address(part))
            win.Flush(comm.rank)
            assert (got == part).all()
            continue
        with pytest.raises(MPI.Exception):
            win.Detach(part)
    win.Unlock(comm.rank)
    win.Free()


@pytest.mark.ompy(1, mca=BY_MESSAGES)
def test_memory_is_attached_or_not_whenever_an_exception_comes_over_messages(comm):
    attaching(comm)


@pytest.mark.ompy(1, 2, mca=DIRECTLY)
def test_memory_is_attached_or_not_whenever_an_exception_comes_in_shared_memory(comm):
    attaching(comm)


def interrupted_makings(comm):
    memory = np.zeros(4)
    makers = (
        lambda: MPI.Win.Create(memory, 8, comm=comm),
        lambda: MPI.Win.Allocate(100, 1, comm=comm),
        lambda: MPI.Win.Allocate_shared(100, 1, comm=comm),
        lambda: MPI.Win.Create_dynamic(comm=comm),
    )
    for make in makers:
        processes = pids(comm)
        if comm.rank == 0:
            # The other one comes when the exception is there.
            until_late(make, before=lambda: os.kill(processes[1], signal.SIGUSR1))  # noqa: B023
        else:
            told()
            with pytest.raises(MPI.Exception, match="the window can't be made on rank 0"):
                make()
        comm.Barrier()
        make().Free()


@pytest.mark.ompy(2, mca=DIRECTLY)
def test_a_window_in_shared_memory_whose_making_an_exception_ends_is_made_by_nobody(comm):
    interrupted_makings(comm)


@pytest.mark.ompy(2, mca=BY_MESSAGES)
def test_a_window_over_messages_whose_making_an_exception_ends_is_made_by_nobody(comm):
    interrupted_makings(comm)


@pytest.mark.ompy(2, mca=BY_REMOTE_ACCESS)
def test_a_window_by_remote_access_whose_making_an_exception_ends_is_made_by_nobody(comm):
    interrupted_makings(comm)


@pytest.mark.ompy(2, mca={"osc": "portals", "btl": "self,portals"})
def test_a_window_over_portals_whose_making_an_exception_ends_is_made_by_nobody(comm):
    interrupted_makings(comm)
