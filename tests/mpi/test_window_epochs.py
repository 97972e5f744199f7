"""What the end of an epoch promises of the window's memory (MPI-4.1, 12.5), with data that are under way for a while."""

import numpy as np
import pytest

from ompy import MPI

# Elements of 8 bytes: far beyond what goes in one piece over any transport.
LONG = 500_000
TURNS = 20
# A get is answered by a message in pieces, by one that the receiver reads, and by one over a network's transport.
PIECES = {"btl": "self,sm", "btl_sm_single_copy": "none"}
READ = {"btl": "self,sm"}
NETWORK = {"btl": "self,zmq"}


def window_of(comm, owner, allocated):
    count = LONG if comm.rank == owner else 0
    if allocated:
        win = MPI.Win.Allocate(8 * count, 8, comm=comm)
        return win, np.frombuffer(win.tomemory(), "d")
    memory = np.zeros(count)
    return MPI.Win.Create(memory, 8, comm=comm), memory


def read_between(comm, begin, end, expose, withdraw):
    """Rank 0 reads what rank 1 had when it opened its memory, though that is written over as soon as it is closed again."""
    for allocated in (False, True):
        win, memory = window_of(comm, 1, allocated)
        got = np.zeros(LONG)
        for turn in range(TURNS):
            if comm.rank:
                memory[:] = turn
                expose(win)
                withdraw(win)
                memory[:] = -1
            else:
                begin(win)
                win.Get(got, 1)
                end(win)
                assert (got == turn).all()
            comm.Barrier()
        win.Free()


def fenced(comm):
    read_between(comm, *[MPI.Win.Fence] * 4)


def posted(comm):
    other = comm.Get_group().Incl([1 - comm.rank])
    read_between(comm, lambda win: win.Start(other), MPI.Win.Complete, lambda win: win.Post(other), MPI.Win.Wait)


def locked(comm):
    """Ranks 0 and 2 have the window of rank 1 in turns: what the one reads is never partly the other's."""
    for allocated in (False, True):
        win, memory = window_of(comm, 1, allocated)
        got = np.zeros(LONG)
        for turn in range(TURNS):
            if comm.rank == 0:
                win.Lock(1, MPI.LOCK_EXCLUSIVE)
                win.Get(got, 1)
                win.Unlock(1)
                assert got.min() == got.max()
            elif comm.rank == 2:
                win.Lock(1, MPI.LOCK_EXCLUSIVE)
                win.Put(np.full(LONG, turn + 1.0), 1)
                win.Unlock(1)
        comm.Barrier()
        assert comm.rank != 1 or (memory == TURNS).all()
        win.Free()


def fenced_by_three(comm, early, target, late, turns):
    """One rank writes late in an epoch, another one early in the next: the second has the last word."""
    memory = np.zeros(1024 if comm.rank == target else 0)
    win = MPI.Win.Create(memory, 8, comm=comm)
    data = np.zeros(1024)
    win.Fence()
    for turn in range(turns):
        if comm.rank == late:
            data[:] = -(turn + 1)
            for _ in range(40 * (turn % 5)):
                comm.Iprobe()
            win.Put(data, target)
        win.Fence()
        if comm.rank == early:
            data[:] = turn + 1
            win.Put(data, target)
        win.Fence()
        assert comm.rank != target or (memory == turn + 1).all()
        win.Fence()
    win.Free()


def completed_before_a_barrier(comm):
    """Every epoch that rank 0 has completed before a barrier is over for who asks once after it."""
    group = comm.Get_group()
    others, origin = group.Excl([0]), group.Incl([0])
    win = MPI.Win.Create(np.zeros(1), 8, comm=comm)
    for _ in range(TURNS):
        if comm.rank == 0:
            win.Start(others)
            comm.Barrier()
            win.Complete()
            comm.Barrier()
        else:
            win.Post(origin)
            comm.Barrier()
            comm.Barrier()
            assert win.Test()
    win.Free()


@pytest.mark.ompy(2, mca=PIECES)
def test_a_fence_waits_for_those_that_still_read(comm):
    fenced(comm)


@pytest.mark.ompy(2, 3, mca=READ)
def test_a_fence_waits_for_those_that_still_read_in_place(comm):
    fenced(comm)


@pytest.mark.ompy(2, mca=NETWORK)
def test_a_fence_waits_for_those_that_still_read_over_a_network(comm):
    fenced(comm)


@pytest.mark.ompy(2, mca=READ)
def test_wait_waits_for_those_that_still_read(comm):
    posted(comm)


@pytest.mark.ompy(2, mca=NETWORK)
def test_wait_waits_for_those_that_still_read_over_a_network(comm):
    posted(comm)


@pytest.mark.ompy(3, mca=READ)
def test_a_lock_goes_on_when_its_holder_has_read(comm):
    locked(comm)


@pytest.mark.ompy(3, mca=NETWORK)
def test_a_lock_goes_on_when_its_holder_has_read_over_a_network(comm):
    locked(comm)


@pytest.mark.ompy(3, mca=READ)
def test_the_next_epochs_writes_wait_for_the_fence_of_their_target(comm):
    fenced_by_three(comm, 0, 1, 2, 200)
    fenced_by_three(comm, 2, 0, 1, 200)


@pytest.mark.ompy(3, mca=NETWORK)
def test_the_next_epochs_writes_wait_for_the_fence_of_their_target_over_a_network(comm):
    fenced_by_three(comm, 0, 1, 2, 100)
    fenced_by_three(comm, 2, 0, 1, 100)


@pytest.mark.ompy(2, 3, 5)
def test_epochs_of_every_kind_follow_one_another(comm, ompy_rng):
    """Each rank reads and writes a part of every other's memory; long and short, in epochs of all kinds, by turns."""
    rank, size = comm.rank, comm.size
    group = comm.Get_group()
    counts = [ompy_rng.choice((1, 500, 20_000)) for _ in range(30)]
    kinds = [ompy_rng.choice(("fence", "post", "lock", "all")) for _ in counts]
    memory = np.zeros(20_000 * size)
    win = MPI.Win.Create(memory, 8, comm=comm)
    win.Fence()
    for turn, (count, kind) in enumerate(zip(counts, kinds, strict=True)):
        if kind == "post":
            win.Post(group)
            win.Start(group)
        elif kind == "all":
            win.Lock_all()
        for target in range(size):
            if kind == "lock":
                win.Lock(target, MPI.LOCK_SHARED)
            win.Put(np.full(count, 1000.0 * turn + rank), target, 20_000 * rank)
            if kind == "lock":
                win.Unlock(target)
        if kind == "fence":
            win.Fence()
        elif kind == "post":
            win.Complete()
            win.Wait()
        elif kind == "all":
            win.Unlock_all()
        if kind in ("lock", "all"):
            comm.Barrier()
        rows = memory.reshape(size, -1)[:, :count]
        assert (rows == 1000.0 * turn + np.arange(size)[:, None]).all(), (turn, kind)
        win.Fence()
    win.Free()


@pytest.mark.ompy(2, 3, mca=READ)
def test_a_barrier_does_not_overtake_the_end_of_an_epoch(comm):
    completed_before_a_barrier(comm)


@pytest.mark.ompy(2, 3, mca=NETWORK)
def test_a_barrier_does_not_overtake_the_end_of_an_epoch_over_a_network(comm):
    completed_before_a_barrier(comm)
