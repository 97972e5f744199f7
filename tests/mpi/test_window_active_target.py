"""Epochs of Post and Wait, Start and Complete in shared memory, where an origin need not wait for its target's Post."""

import numpy as np
import pytest
from accessing import made
from late_signals import until_late

from ompy import MPI

DIRECTLY = {"osc": "sm"}
FLAVORS = ("allocate", "create", "shared")


def pair(comm):
    """The groups of rank 0 and of rank 1."""
    return [comm.Get_group().Incl([rank]) for rank in (0, 1)]


@pytest.mark.ompy(2, mca=DIRECTLY)
@pytest.mark.parametrize("flavor", FLAVORS)
def test_short_puts_wait_for_nobody_and_are_seen_by_who_has_waited(comm, flavor):
    win, memory = made(flavor, comm, 8)
    first, other = pair(comm)
    for value in range(1, 6):
        if comm.rank == 0:
            win.Start(other)
            win.Put(np.full(1, float(value)), 1, 3)
            win.Put(np.full(1, value + 0.5), 1, 5)
            win.Complete()
            comm.Barrier()
        else:
            memory[:] = -1
            comm.Barrier()
            win.Post(first)
            assert (memory == -1).all()
            win.Wait()
            assert memory.tolist() == [-1, -1, -1, value, -1, value + 0.5, -1, -1]
        comm.Barrier()
    if comm.rank == 0:
        win.Lock(1)
        win.Put(np.full(1, 7.0), 1, 3)
        win.Unlock(1)
    comm.Barrier()
    assert comm.rank == 0 or memory[3] == 7
    win.Free()


@pytest.mark.ompy(2, mca=DIRECTLY)
@pytest.mark.parametrize("create", [False, True], ids=["allocate", "create"])
def test_puts_of_any_number_of_bytes_travel_with_a_complete(comm, create):
    win = MPI.Win.Create(bytearray(150), comm=comm) if create else MPI.Win.Allocate(150, comm=comm)
    first, other = pair(comm)
    for size in range(1, 50):
        pieces = [bytes([size + number] * size) for number in range(3)]
        if comm.rank == 0:
            win.Start(other)
            for number, piece in enumerate(pieces):
                win.Put(piece, 1, size * number)
            win.Complete()
        else:
            win.Post(first)
            win.Wait()
            assert bytes(win.tomemory()[: 3 * size]) == b"".join(pieces)
    win.Free()


@pytest.mark.ompy(2, mca=DIRECTLY)
@pytest.mark.parametrize("flavor", FLAVORS)
def test_an_origin_is_two_epochs_ahead_of_its_target_at_most(comm, flavor):
    win, memory = made(flavor, comm, 1)
    first, other = pair(comm)
    if comm.rank == 0:
        for value in range(5):
            if value == 2:
                until_late(lambda: win.Start(other))
                comm.Barrier()
            win.Start(other)
            win.Put(np.full(1, float(value)), 1)
            win.Complete()
    else:
        comm.Barrier()
        for value in range(5):
            win.Post(first)
            win.Wait()
            assert memory[0] == value
    win.Free()


spread = MPI.DOUBLE.Create_vector(2, 1, 2).Commit()
one, old, three = np.full(1, 9.0), np.zeros(1), np.arange(3.0)
WAITING = {
    "get": lambda win: win.Get(old, 1, 7),
    "accumulate": lambda win: win.Accumulate(one, 1, 7),
    "get_accumulate": lambda win: win.Get_accumulate(one, old, 1, 7),
    "fetch_and_op": lambda win: win.Fetch_and_op(one, old, 1, 7),
    "compare_and_swap": lambda win: win.Compare_and_swap(*(np.full(1, it).view("i8") for it in (9.0, 5.0, 0.0)), 1, 7),
    "a long put": lambda win: win.Put(np.full(1000, 9.0), 1, 7),
    "a put that is one too many": lambda win: [win.Put(one, 1, place) for place in (7, 8, 9)],
    "a put of a vector": lambda win: win.Put(np.full(2, 9.0), 1, (7, 1, spread)),
    "a put from a vector": lambda win: win.Put([three, 1, spread], 1, 7),
}


@pytest.mark.ompy(2, mca=DIRECTLY)
@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("what", WAITING)
def test_everything_else_waits_for_the_post_and_comes_after_what_was_put(comm, what, flavor):
    win, memory = made(flavor, comm, 2000)
    first, other = pair(comm)
    for _ in range(3):
        if comm.rank == 0:
            win.Start(other)
            win.Put(np.full(1, 1.0), 1, 3)
            until_late(lambda: WAITING[what](win))
            comm.Barrier()
            WAITING[what](win)
            win.Put(np.full(1, 2.0), 1, 4)
            win.Complete()
        else:
            comm.Barrier()
            memory[:] = 5
            win.Post(first)
            win.Wait()
            assert memory[3] == 1
            assert memory[4] == 2
            assert what == "get" or memory[7] != 5
        comm.Barrier()
    win.Free()


def epochs(comm, flavor, seed):
    """Random groups, assertions and accesses, against what each rank's memory is to hold."""
    print(f"seed {seed}")
    random = np.random.default_rng(seed)
    count, size = 64, comm.size
    win, memory = made(flavor, comm, count * size)
    expected = np.zeros((size, size, count))
    members = [comm.Get_group().Incl([rank for rank in range(size) if which >> rank & 1]) for which in range(1 << size)]
    for turn in range(400):
        pairs = random.random((size, size)) < random.random()
        checked = random.random() < 0.8
        assertion = 0 if checked else MPI.MODE_NOCHECK
        win.Post(members[sum(1 << int(rank) for rank in np.flatnonzero(pairs[:, comm.rank]))], assertion)
        if not checked:
            comm.Barrier()
        win.Start(members[sum(1 << int(rank) for rank in np.flatnonzero(pairs[comm.rank]))], assertion)
        for origin, target in np.argwhere(pairs):
            for _ in range(random.integers(4)):
                start = random.integers(count)
                length = min(random.choice((1, 2, 5, 40)), count - start)
                reads = random.random() < 0.1
                value = float(random.integers(1 << 30))
                if origin == comm.rank:
                    if reads:
                        win.Get(np.zeros(length), target, origin * count + start)
                    else:
                        win.Put(np.full(length, value), target, origin * count + start)
                if not reads:
                    expected[target, origin, start : start + length] = value
        win.Complete()
        win.Wait()
        assert memory.tolist() == expected[comm.rank].ravel().tolist(), (seed, turn)
        if random.random() < 0.2:
            comm.Barrier()
    win.Free()


@pytest.mark.ompy(2, 3, mca=DIRECTLY)
@pytest.mark.parametrize("flavor", FLAVORS)
def test_random_epochs_leave_what_they_should(comm, flavor, seed):
    epochs(comm, flavor, seed)


@pytest.mark.long
@pytest.mark.ompy(34, mca=DIRECTLY, timeout=300)
def test_epochs_of_many_ranks_whose_completions_hold_no_data(comm):
    win, memory = made("allocate", comm, comm.size)
    group, others = comm.Get_group(), [rank for rank in range(comm.size) if rank != comm.rank]
    for turn in range(1, 6):
        win.Post(group.Incl(others))
        win.Start(group.Incl(others))
        for target in others:
            win.Put(np.full(1, float(turn)), target, comm.rank)
        win.Complete()
        win.Wait()
        assert memory[others].tolist() == [turn] * len(others)
    win.Free()
