"""Long accesses to ordinary memory of targets inside MPI: both sides have a part in them."""

from __future__ import annotations

import ctypes
import random
import time
from collections import Counter

import numpy as np
import pytest
from accessing import poll_until_told
from ordering import ABSORB, KINDS, PATIENT, PULL, PUSH, access, access_rank_1, counters, over_ordinary_memory, word

from ompy import MPI

# Around what has room there in one, in two and in more orders, what is read or combined at a time, and what one order may be
# about.
LONG = (32769, 65535, 65536, 65537, 131071, 131072, 131073, 200000, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, 5000000)


@pytest.mark.ompy(2, mca={"osc": "sm", "osc_sm_patience": "4000"})
@pytest.mark.parametrize(("nbytes", "kinds", "orders"), [(65535, ["put", "get"], 2), (300000, ["put", "get", "accumulate"], 5)])
def test_what_a_target_that_leaves_mpi_half_way_has_not_done_the_kernel_does(comm, nbytes, kinds, orders, ompy_seed):
    """The longer ones go from the end every second time."""
    win, memory = over_ordinary_memory(comm, nbytes)
    if comm.rank == 0:
        dice, model, parted = random.Random(ompy_seed), np.zeros(nbytes, "u1"), Counter()
        win.Lock_all()
        while any(parted[what] < 4 for what in kinds):  # not every one goes through the mailbox, or finds the target in MPI
            what = dice.choice(kinds)
            before = counters()["ordered"]
            access(win, what, nbytes, model, dice)
            # One may be that both sides did a share.
            parted[what] += (1 if orders > 2 else 0) < counters()["ordered"] - before < orders
        win.Unlock_all()
        comm.send(model, 1, 99)
    else:
        request, dice = comm.irecv(source=0, tag=99), random.Random(ompy_seed)
        while not request.Get_status():
            leaves = counters()["carried out"] + dice.randrange(orders)
            while counters()["carried out"] < leaves and not request.Get_status():
                pass
            end = time.monotonic() + 0.008
            while time.monotonic() < end:
                pass
        assert (memory == request.wait()).all(), f"seed {ompy_seed}"
    win.Free()


@pytest.mark.ompy(2, mca=PATIENT)
@pytest.mark.parametrize("what", KINDS)
def test_a_target_inside_mpi_has_a_part_in_long_accesses(comm, what, ompy_seed):
    """Of copies, if it comes before the origin's half is done, so that all that is asked is that the bytes are right."""
    parts = access_rank_1(comm, what, LONG, ompy_seed)
    assert what != "accumulate" or parts >= len(LONG)


def orders_of(comm, what, turns, seed, poll=poll_until_told):
    """How many orders each of rank 0's accesses of 1 MiB took; nothing on rank 1, which polls."""
    nbytes, orders = 1 << 20, []
    win, memory = over_ordinary_memory(comm, nbytes)
    if comm.rank == 0:
        dice, model = random.Random(seed), np.zeros(nbytes, "u1")
        win.Lock_all()
        for _ in range(turns):
            before = counters()["ordered"]
            access(win, what, nbytes, model, dice)
            orders.append(counters()["ordered"] - before)
        win.Unlock_all()
        comm.send(model, 1, 99)
    else:
        assert (memory == poll(comm)).all(), f"seed {seed}"
    win.Free()
    return orders


def poll_each(seconds):
    """What polls so seldom until it is told, and calls `look` each time."""

    def poll(comm, look=lambda: None):
        while not comm.Iprobe(tag=99):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                pass
            look()
        return comm.recv(tag=99)

    return poll


@pytest.mark.ompy(2, mca=PATIENT)
@pytest.mark.parametrize(("what", "ways"), [("put", {0, 1, 16}), ("get", {0, 1, 16}), ("accumulate", {1, 16})])
def test_long_accesses_go_every_way_and_each_is_tried_again(comm, what, ways, ompy_seed):
    """Through the mailbox are sixteen orders, by the kernel on both sides one, or none where the target of a copy came late,
    and here alone none."""
    orders = orders_of(comm, what, 130, ompy_seed)
    surely = ways - {1} if 0 in ways else ways
    assert comm.rank or surely <= set(orders[:4]) <= ways
    assert comm.rank or surely <= set(orders[4:]) <= ways


@pytest.mark.ompy(2, mca=PATIENT)
@pytest.mark.parametrize("what", ["put", "get"])
def test_long_copies_usually_go_the_way_that_takes_least(comm, what, ompy_seed):
    """Through the mailbox of a target that looks into it each 5 ms they take 80 ms, and by the kernel none of its time."""
    orders = orders_of(comm, what, 60, ompy_seed, poll_each(0.005))
    assert comm.rank or orders[:4].count(16) > 0, orders
    assert orders[4:].count(16) < 8, orders


@pytest.mark.ompy(2, mca=PATIENT)
@pytest.mark.parametrize("count", [5000, 123_457, 400_003])
@pytest.mark.parametrize("name", ["SUM", "REPLACE"])
def test_elements_of_which_no_piece_holds_a_whole_number_are_accumulated_each_once(comm, name, count):
    triple = MPI.INT32_T.Create_contiguous(3).Commit()
    win, memory = over_ordinary_memory(comm, 12 * count)
    memory.view("i4")[:] = 7
    comm.Barrier()
    if comm.rank == 0:
        data = np.arange(3 * count, dtype="i4")
        win.Lock_all()
        win.Accumulate([data, count, triple], 1, [0, count, triple], getattr(MPI, name))
        win.Unlock_all()
        comm.send(None, 1, 99)
    else:
        poll_until_told(comm)
        wanted = np.arange(3 * count, dtype="i4") + (7 if name == "SUM" else 0)
        assert (memory.view("i4") == wanted).all()
    win.Free()
    triple.Free()


@pytest.mark.ompy(2, mca=PATIENT)
@pytest.mark.parametrize(("what", "kind"), [("put", PULL), ("get", PUSH), ("accumulate", ABSORB)])
def test_the_side_that_is_done_first_has_more_of_the_next_long_access(comm, what, kind, ompy_seed):
    """The target comes milliseconds late each time."""
    nbytes, shares = 1 << 20, []

    def note_share():
        if word(0, 20, ctypes.c_uint16).value == kind:
            shares.append(word(0, 16).value)

    orders_of(comm, what, 40, ompy_seed, lambda comm: poll_each(0.002)(comm, note_share))
    if comm.rank == 1:
        assert min(shares) < nbytes // 2, shares


@pytest.mark.ompy(2, 3, mca=PATIENT)
def test_long_accumulates_are_atomic(comm):
    """However they go, and whichever end they begin at."""
    count, turns = 40_000, 30
    memory = np.zeros(count, "i8")
    win = MPI.Win.Create(memory, 8, comm=comm)
    win.Lock_all()
    for _turn in range(turns):
        for target in range(comm.size):
            win.Accumulate(np.ones(count, "i8"), target)
    win.Unlock_all()
    comm.Barrier()
    assert (memory == turns * comm.size).all()
    win.Free()


@pytest.mark.ompy(2, mca={"osc": "sm", "osc_sm_patience": "1"})
def test_a_long_accumulate_never_takes_the_operation_of_an_order_before(comm):
    """The target is in MPI for moments only, so that orders are withdrawn, and paused for, at every place."""
    count, turns = 20_000, 3000
    memory = np.zeros(count + 8, "i8")
    win = MPI.Win.Create(memory, 8, comm=comm)
    comm.Barrier()
    if comm.rank == 0:
        ones, zeros = np.ones(count, "i8"), np.zeros(8, "i8")
        win.Lock_all()
        for _ in range(turns):
            win.Accumulate(zeros, 1, count, MPI.BXOR)
            win.Accumulate(ones, 1)
        win.Unlock_all()
        comm.send(None, 1, 99)
    else:
        while not comm.Iprobe(tag=99):
            sum(range(30))
        comm.recv(tag=99)
        assert (memory[:count] == turns).all()
    win.Free()
