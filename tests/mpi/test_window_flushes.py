"""Flushes over messages: what they wait for, and how many messages an access and its flush are."""

import os
import random

import numpy as np
import pytest

from ompy import MPI

BY_MESSAGES = {"osc": "pt2pt", "btl": "sm,self"}
TIMES = 20


def messages_sent():
    from ompy.mca.pml import chosen

    (btl,) = [btl for btl in chosen().bml.btls if btl.name == "sm"]
    return btl.statistics()["messages_sent"]


@pytest.mark.ompy(2, mca=BY_MESSAGES)
@pytest.mark.parametrize("what", ["Put", "Accumulate", "Fetch_and_op", "Get_accumulate", "Compare_and_swap"])
def test_who_flushes_each_access_sends_one_message_for_both(comm, what):
    win = MPI.Win.Create(np.zeros(4), 8, comm=comm)
    mine, old, same = np.ones(1, "i8"), np.zeros(1, "i8"), np.zeros(1, "i8")
    access = {
        "Put": lambda: win.Put(mine, 1),
        "Accumulate": lambda: win.Accumulate(mine, 1),
        "Fetch_and_op": lambda: win.Fetch_and_op(mine, old, 1),
        "Get_accumulate": lambda: win.Get_accumulate(mine, old, 1),
        "Compare_and_swap": lambda: win.Compare_and_swap(mine, same, old, 1),
    }[what]
    if comm.rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        access()
        win.Flush(1)
        before = messages_sent()
        for _ in range(TIMES):
            access()
            win.Flush(1)
        assert messages_sent() - before == TIMES
        # The first of them flushed by itself, which is no word on the second.
        before = messages_sent()
        access()
        access()
        win.Flush(1)
        assert messages_sent() - before == 3
        win.Unlock(1)
    win.Free()


@pytest.mark.ompy(2, mca=BY_MESSAGES)
def test_a_local_flush_does_not_wait_for_a_target_that_is_outside_of_mpi(comm, tmp_path):
    win = MPI.Win.Create(np.zeros(4), 8, comm=comm)
    sign = comm.bcast(str(tmp_path / "may-go-on"))
    if comm.rank == 0:
        win.Lock(1, MPI.LOCK_SHARED)
        for _ in range(2):
            win.Put(np.ones(1), 1)
            win.Flush(1)
    comm.Barrier()
    if comm.rank == 0:
        for flush in (lambda: win.Flush_local(1), win.Flush_local_all):
            win.Put(np.ones(1), 1)
            flush()
        open(sign, "w").close()
        win.Unlock(1)
    while not os.path.exists(sign):
        pass
    win.Free()


@pytest.mark.ompy(2, mca=BY_MESSAGES)
def test_the_flush_of_one_access_tells_what_went_wrong_with_it_at_the_target(comm):
    win = MPI.Win.Create_dynamic(comm=comm)
    memory = np.zeros(4)
    win.Attach(memory)
    place = comm.bcast(MPI.Get_address(memory), root=1)
    one, old = np.ones(1), np.zeros(1)
    accesses = (
        lambda: win.Put(one, 1, place),
        lambda: win.Accumulate(one, 1, place),
        lambda: win.Fetch_and_op(one, old, 1, place),
    )
    win.Lock_all()
    for access in accesses:
        if comm.rank == 0:
            for _ in range(2):
                access()
                win.Flush(1)
    comm.Barrier()
    if comm.rank == 1:
        win.Detach(memory)
    comm.Barrier()
    for access in accesses:
        if comm.rank == 0:
            for _ in range(2):
                access()
                with pytest.raises(MPI.Exception) as caught:
                    win.Flush(1)
                assert caught.value.Get_error_class() == MPI.ERR_RMA_RANGE
                win.Flush(1)
    win.Unlock_all()
    win.Free()


@pytest.mark.ompy(2, 3, mca=BY_MESSAGES)
def test_after_a_flush_whoever_is_told_sees_each_of_the_accesses(comm, ompy_seed):
    """Few and many of them between two flushes, short and long, of one target or of all, flushed locally before or not."""
    dice, room, value = random.Random(ompy_seed + comm.rank), 4096, 0
    memory = np.zeros(comm.size * room)
    win = MPI.Win.Create(memory, 8, comm=comm)
    others = [rank for rank in range(comm.size) if rank != comm.rank]
    win.Lock_all()
    for _ in range(200):
        expected = {}
        for _ in range(dice.choice((1, 1, 1, 2, 5))):
            target, count = dice.choice(others), dice.choice((1, 8, room))
            value += 1
            win.Put(np.full(count, float(value)), target, comm.rank * room)
            expected.setdefault(target, np.full(room, -1.0))[:count] = value
            if dice.random() < 0.2:
                win.Flush_local(target)
        if dice.random() < 0.5:
            win.Flush_all()
        else:
            for target in expected:
                win.Flush(target)
        told = comm.alltoall([expected.get(rank) for rank in range(comm.size)])
        for origin, numbers in enumerate(told):
            if numbers is not None:
                found = memory[origin * room : (origin + 1) * room]
                assert (found == numbers)[numbers >= 0].all(), f"seed {ompy_seed}: what rank {origin} has put"
        comm.Barrier()
    win.Unlock_all()
    win.Free()
