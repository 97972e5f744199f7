"""Epochs: who may access when, and who waits for whom."""

import threading

import numpy as np
import pytest

from ompy import MPI


def error_of(call, *arguments):
    with pytest.raises(MPI.Exception) as caught:
        call(*arguments)
    return caught.value.Get_error_class()


def test_calls_out_of_order_are_refused():
    win = MPI.Win.Create(bytearray(8))
    for call in (win.Complete, win.Wait, win.Test, win.Unlock_all, win.Flush_all):
        assert error_of(call) == MPI.ERR_RMA_SYNC
    for call in (win.Unlock, win.Flush, win.Flush_local):
        assert error_of(call, 0) == MPI.ERR_RMA_SYNC
    assert error_of(win.Put, b"x", 0) == MPI.ERR_RMA_SYNC
    assert error_of(win.Lock, 0, 77) == MPI.ERR_LOCKTYPE
    assert error_of(win.Lock, 5) == MPI.ERR_RANK
    win.Lock(0)
    assert error_of(win.Lock, 0) == MPI.ERR_RMA_SYNC
    assert error_of(win.Lock_all) == MPI.ERR_RMA_SYNC
    assert error_of(win.Fence) == MPI.ERR_RMA_SYNC
    assert error_of(win.Start, MPI.GROUP_EMPTY) == MPI.ERR_RMA_SYNC
    win.Unlock(0)
    win.Start(MPI.GROUP_EMPTY)
    assert error_of(win.Lock, 0) == MPI.ERR_RMA_SYNC
    assert error_of(win.Lock_all) == MPI.ERR_RMA_SYNC
    win.Complete()
    win.Fence()
    win.Put(b"x", 0)
    win.Fence(MPI.MODE_NOSUCCEED)
    assert error_of(win.Put, b"x", 0) == MPI.ERR_RMA_SYNC
    win.Free()


@pytest.mark.ompy(2, 3)
def test_post_start_complete_wait(comm):
    """Rank 0 writes to all others, which only open their memory."""
    memory = np.zeros(5000)
    win = MPI.Win.Create(memory, 8, comm=comm)
    for turn in range(3):
        if comm.rank == 0:
            others = win.group.Excl([0])
            win.Start(others)
            for rank in range(1, comm.size):
                win.Put(np.full(5000, 10.0 * turn + rank), rank)
                win.Put(np.full(1, -1.0), rank, 4999)
            win.Complete()
        else:
            win.Post(win.group.Incl([0]))
            win.Wait()
            assert (memory[:4999] == 10 * turn + comm.rank).all()
            assert memory[4999] == -1
    win.Free()


@pytest.mark.ompy(3)
@pytest.mark.parametrize("flavor", ["allocate", "create"])
def test_groups_change_from_epoch_to_epoch(comm, flavor):
    """Each rank writes its turn to a set of ranks, itself perhaps among them, which is another one each time."""
    if flavor == "allocate":
        win = MPI.Win.Allocate(8 * comm.size, 8, comm=comm)
        memory = np.frombuffer(win.tomemory(), "i8")
    else:
        memory = np.zeros(comm.size, "i8")
        win = MPI.Win.Create(memory, 8, comm=comm)
    groups = [win.group.Incl([rank for rank in range(3) if members >> rank & 1]) for members in range(8)]
    last = [0] * 3
    random = np.random.default_rng(39)
    for turn in range(1, 301):
        targets = random.integers(8, size=3)
        origins = [sum(1 << origin for origin in range(3) if targets[origin] >> target & 1) for target in range(3)]
        win.Post(groups[origins[comm.rank]])
        win.Start(groups[targets[comm.rank]])
        for target in range(3):
            if targets[comm.rank] >> target & 1:
                win.Put(np.full(1, turn), target, comm.rank)
        win.Complete()
        if turn % 3:
            win.Wait()
        else:
            while not win.Test():
                pass
        for origin in range(3):
            last[origin] = turn if origins[comm.rank] >> origin & 1 else last[origin]
        assert memory.tolist() == last, turn
    win.Free()


def test_a_group_is_of_the_windows_processes():
    win = MPI.Win.Create(bytearray(8), comm=MPI.COMM_SELF)
    group = win.group
    for _ in range(2):
        win.Post(group)
        win.Start(group)
        win.Complete()
        win.Wait()
    group.Free()
    for call in (win.Post, win.Start):
        assert error_of(call, group) == MPI.ERR_GROUP
    win.Free()


@pytest.mark.ompy(2)
def test_a_group_with_others_than_the_windows_processes_is_refused(comm):
    win = MPI.Win.Create(bytearray(8), comm=MPI.COMM_SELF)
    for _ in range(2):
        for call in (win.Post, win.Start):
            assert error_of(call, comm.Get_group()) == MPI.ERR_GROUP
    win.Free()


@pytest.mark.ompy(2)
def test_an_exposure_is_tested_without_waiting(comm):
    win = MPI.Win.Create(bytearray(8), comm=comm)
    group = win.group.Incl([1 - comm.rank])
    if comm.rank == 0:
        win.Post(group)
        assert not win.Test()
        comm.Barrier()
        while not win.Test():
            pass
        assert error_of(win.Test) == MPI.ERR_RMA_SYNC
        assert bytes(win.tomemory()) == b"12345678"
    else:
        win.Start(group)
        win.Put(b"12345678", 0)
        comm.Barrier()
        win.Complete()
    win.Free()


@pytest.mark.ompy(2, 3)
def test_exclusive_locks_exclude(comm):
    """Read, let others have a go, write back one more: without exclusion some of it would be lost."""
    turns = 30
    last = comm.size - 1
    win = MPI.Win.Allocate(8 if comm.rank == last else 0, 8, comm=comm)
    for _ in range(turns):
        value = np.zeros(1, "i8")
        comm.Barrier()
        win.Lock(last)
        win.Get(value, last)
        win.Flush(last)
        for _ in range(20):
            comm.Iprobe()
        win.Put(value + 1, last)
        win.Unlock(last)
    comm.Barrier()
    if comm.rank == last:
        assert np.frombuffer(win.tomemory(), "i8")[0] == turns * comm.size
    win.Free()


@pytest.mark.ompy(3)
def test_shared_locks_share_and_an_exclusive_one_waits_its_turn(comm):
    """Ranks 1 and 2 hold the lock at the same time; rank 0 gets it when both have given it back."""
    win = MPI.Win.Allocate(3, comm=comm)
    if comm.rank:
        win.Lock(0, MPI.LOCK_SHARED)
        comm.Barrier()
        comm.sendrecv(None, 3 - comm.rank, source=3 - comm.rank)
        win.Put(bytes([comm.rank]), 0, comm.rank)
        win.Unlock(0)
    else:
        comm.Barrier()
        win.Lock(0, MPI.LOCK_EXCLUSIVE)
        assert bytes(win.tomemory()) == b"\0\1\2"
        win.Unlock(0)
    win.Free()


@pytest.mark.ompy(2)
def test_flush_completes_at_the_target(comm):
    win = MPI.Win.Allocate(80000, 8, comm=comm)
    if comm.rank == 0:
        win.Lock_all()
        win.Put(np.full(10000, 3.0), 1)
        win.Flush_local(1)
        win.Flush_all()
        comm.send("it is there", 1)
        win.Flush_local_all()
        win.Unlock_all()
    else:
        assert comm.recv(source=0) == "it is there"
        assert (np.frombuffer(win.tomemory()) == 3).all()
    win.Free()


@pytest.mark.ompy(2)
def test_a_target_that_waits_for_something_else_makes_progress(comm):
    win = MPI.Win.Allocate(8, comm=comm)
    if comm.rank == 0:
        for _ in range(10):
            win.Lock(1)
            win.Put(b"12345678", 1)
            win.Unlock(1)
        comm.send(None, 1)
    else:
        comm.recv(source=0)
        assert bytes(win.tomemory()) == b"12345678"
    win.Free()


@pytest.mark.ompy(2)
def test_a_thread_waits_for_a_lock_that_another_holds(comm):
    win = MPI.Win.Allocate(8, 8, comm=comm)
    other = MPI.Win(win)
    order = []
    if comm.rank == 0:
        win.Lock(1)

        def hold():
            comm.recv(source=1)
            order.append("released")
            other.Unlock(1)

        thread = threading.Thread(target=hold)
        thread.start()
        thread.join()
        assert order == ["released"]
    else:
        comm.send(None, 0)
        win.Lock(1)
        win.Unlock(1)
    win.Free()


@pytest.mark.ompy(2)
def test_locks_that_nobody_checks(comm):
    win = MPI.Win.Allocate(1, comm=comm)
    if comm.rank == 0:
        win.Lock(1, MPI.LOCK_EXCLUSIVE, MPI.MODE_NOCHECK)
        win.Put(b"a", 1)
        win.Unlock(1)
        win.Lock_all(MPI.MODE_NOCHECK)
        win.Accumulate(b"\1", 1, op=MPI.REPLACE)
        win.Unlock_all()
    comm.Barrier()
    if comm.rank == 1:
        assert bytes(win.tomemory()) == b"\1"
    win.Free()


@pytest.mark.ompy(3)
def test_what_comes_after_a_fence_waits_for_what_came_before(comm):
    """Rank 1's window: a long put of rank 2's in one epoch, a short one of rank 0's over it in the next."""
    memory = np.zeros(400000)
    win = MPI.Win.Create(memory, 8, comm=comm)
    for turn in range(1, 8):
        win.Fence()
        if comm.rank == 2:
            win.Put(np.full(len(memory), 1.0 * turn), 1)
        win.Fence()
        if comm.rank == 0:
            win.Put(np.full(1, -1.0 * turn), 1, len(memory) - 1)
        win.Fence()
        if comm.rank == 1:
            assert memory[-1] == -turn
            assert (memory[:-1] == turn).all()
    win.Free()
