"""Short puts and gets over ordinary memory, which are orders that are left when their call returns: what completes them."""

from __future__ import annotations

import gc
import os
import random
import time
import weakref

import numpy as np
import pytest
from test_window_mailbox import PATIENT, SHORT, counters, over_ordinary_memory, poll_until_told

from ompy import MPI


class Passive:
    """Rank 0 accesses the others, which poll."""

    def __init__(self, win, end):
        self.win, self.end = win, end

    def __enter__(self):
        if self.end == "unlock":
            for target in range(1, self.win.group.size):
                self.win.Lock(target)
        else:
            self.win.Lock_all()

    def __exit__(self, *_):
        targets = range(1, self.win.group.size)
        if self.end == "flush":
            for target in targets:
                self.win.Flush(target)
        elif self.end == "flush_local":
            for target in targets:
                self.win.Flush_local(target)
        elif self.end == "flush_all":
            self.win.Flush_all()
        elif self.end == "flush_local_all":
            self.win.Flush_local_all()
        elif self.end == "unlock":
            for target in targets:
                self.win.Unlock(target)
        elif self.end == "unlock_all":
            self.win.Unlock_all()

    def close(self):
        if self.end not in ("unlock", "unlock_all"):
            self.win.Unlock_all()


PASSIVE = ["flush", "flush_local", "flush_all", "flush_local_all", "unlock", "unlock_all"]


def stretches(ranks, seed):
    """(target, first byte, bytes) of accesses that touch no byte twice."""
    dice, place, found = random.Random(seed), 0, []
    for nbytes in dice.choices(SHORT, k=40):
        found.append((dice.randrange(1, ranks), place, nbytes))
        place += nbytes
    return found, place


@pytest.mark.ompy(2, 3, mca=PATIENT)
@pytest.mark.parametrize("end", PASSIVE)
def test_gets_are_there_when_their_epoch_is_complete(comm, end, ompy_seed):
    accesses, total = stretches(comm.size, ompy_seed)
    win, memory = over_ordinary_memory(comm, total)
    memory[:] = np.frombuffer(random.Random(comm.rank).randbytes(total), "u1")
    comm.Barrier()
    if comm.rank == 0:
        before, epoch = counters()["ordered"], Passive(win, end)
        contents = [np.frombuffer(random.Random(rank).randbytes(total), "u1") for rank in range(comm.size)]
        with epoch:
            got = [np.zeros(nbytes, "u1") for _, _, nbytes in accesses]
            for into, (target, first, _) in zip(got, accesses, strict=True):
                win.Get(into, target, first)
        for into, (target, first, nbytes) in zip(got, accesses, strict=True):
            assert (into == contents[target][first : first + nbytes]).all(), f"seed {ompy_seed}"
        assert counters()["ordered"] - before == len(accesses)
        epoch.close()
        for rank in range(1, comm.size):
            comm.send(None, rank, 99)
    else:
        poll_until_told(comm)
    win.Free()


@pytest.mark.ompy(2, 3, mca=PATIENT)
@pytest.mark.parametrize("end", [end for end in PASSIVE if "local" not in end])
def test_puts_are_there_when_their_epoch_is_complete(comm, end, ompy_seed):
    """What is put may change as soon as the call has returned: it is in the slot."""
    accesses, total = stretches(comm.size, ompy_seed)
    win, memory = over_ordinary_memory(comm, total)
    if comm.rank == 0:
        before, epoch = counters()["ordered"], Passive(win, end)
        models = np.zeros((comm.size, total), "u1")
        with epoch:
            for target, first, nbytes in accesses:
                data = np.frombuffer(random.Random(first).randbytes(nbytes), "u1").copy()
                win.Put(data, target, first)
                models[target][first : first + nbytes] = data
                if end == "unlock_all":
                    win.Flush_local(target)
                    data[:] = 0
        for rank in range(1, comm.size):
            comm.send(models[rank], rank, 99)
        assert counters()["ordered"] - before == len(accesses)
        epoch.close()
    else:
        assert (memory == poll_until_told(comm)).all(), f"seed {ompy_seed}"
    win.Free()


@pytest.mark.ompy(3, mca=PATIENT)
def test_epochs_of_all_ranks_complete_what_each_has_begun(comm, ompy_seed):
    """Each has orders for both others, which are in the same call."""
    win, memory = over_ordinary_memory(comm, 3 * 64)
    others = [rank for rank in range(3) if rank != comm.rank]
    group = comm.Get_group().Incl(others)
    dice = random.Random(ompy_seed)

    def begin(by_fences):
        if by_fences:
            win.Fence()
        else:
            win.Post(group)
            win.Start(group)

    def end(by_fences):
        if by_fences:
            win.Fence()
        else:
            win.Complete()
            win.Wait()

    for turn in range(1, 300):
        by_fences = dice.random() < 0.5
        into = np.zeros((3, 64), "u1")
        begin(by_fences)
        for other in others:
            win.Put(np.full(64, turn % 251, "u1"), other, 64 * comm.rank)
        end(by_fences)
        assert all((memory[64 * other : 64 * other + 64] == turn % 251).all() for other in others), f"seed {ompy_seed}"
        begin(by_fences)
        for other in others:
            win.Get(into[other], other, 64 * comm.rank)
        end(by_fences)
        assert all((into[other] == turn % 251).all() for other in others), f"seed {ompy_seed}"
    win.Fence(MPI.MODE_NOSUCCEED)
    win.Free()


@pytest.mark.ompy(2, mca=PATIENT)
def test_whatever_comes_next_finds_the_target_s_mailbox_free(comm, ompy_seed):
    """Accesses of every kind through two windows, whose orders go through one slot; none is waited for before the end."""
    kinds = ("put", "get", "accumulate", "fetch", "swap", "long", "strided", "rput", "rget")
    words = 40000
    windows = [over_ordinary_memory(comm, 8 * words) for _ in range(2)]
    every_other = MPI.INT64_T.Create_vector(8, 1, 2).Commit()
    if comm.rank == 0:
        dice, place, got = random.Random(ompy_seed), 0, []
        models = [np.zeros(words, "i8") for _ in windows]
        requests = []
        for win, _ in windows:
            win.Lock_all()
        for number in range(1, 900):
            which, what = dice.randrange(2), dice.choice(kinds if number % 50 else kinds[:2])
            win, model = windows[which][0], models[which]
            count = 12000 if what == "long" and number % 50 == 0 else dice.choice([1, 4, 5, 16])
            place = (place + 16) % (words - 12000)
            win.Flush(1)  # of this window: those of the other one stay
            if what in ("put", "long"):
                win.Put(np.full(count, number), 1, 8 * place)
                model[place : place + count] = number
            elif what == "rput":
                requests.append(win.Rput(np.full(count, number), 1, 8 * place))
                model[place : place + count] = number
            elif what in ("get", "rget"):
                into = np.zeros(count, "i8")
                got.append((into, model[place : place + count].copy()))
                if what == "rget":
                    win.Rget(into, 1, 8 * place).Wait()
                    assert (into == got[-1][1]).all(), f"seed {ompy_seed}"
                else:
                    win.Get(into, 1, 8 * place)
            elif what == "accumulate":
                win.Accumulate(np.full(count, number), 1, 8 * place)
                model[place : place + count] += number
            elif what == "fetch":
                old = np.zeros(1, "i8")
                win.Fetch_and_op(np.full(1, number), old, 1, 8 * place)
                got.append((old, model[place : place + 1].copy()))
                model[place] += number
            elif what == "swap":
                old = np.zeros(1, "i8")
                win.Compare_and_swap(np.full(1, number), model[place : place + 1].copy(), old, 1, 8 * place)
                got.append((old, model[place : place + 1].copy()))
                model[place] = number
            else:
                win.Put([np.full(8, number), 8, MPI.INT64_T], 1, (8 * place, 1, every_other))
                model[place : place + 16 : 2] = number
        for win, _ in windows:
            win.Unlock_all()
        MPI.Request.Waitall(requests)
        assert all((into == expected).all() for into, expected in got), f"seed {ompy_seed}"
        comm.send(models, 1, 99)
    else:
        models = poll_until_told(comm)
        for (_, memory), model in zip(windows, models, strict=True):
            assert (memory.view("i8") == model).all(), f"seed {ompy_seed}"
    every_other.Free()
    for win, _ in windows:
        win.Free()


@pytest.mark.ompy(2, mca={"osc": "sm"})
def test_what_the_target_never_looks_at_the_kernel_does(comm):
    """Rank 1 is inside MPI when the orders are posted, and outside of it from then on."""
    win, memory = over_ordinary_memory(comm, 1 << 16)
    told = np.frombuffer(MPI.Win.Allocate_shared(8 if comm.rank == 0 else 0, 8, comm=comm).Shared_query(0)[0], "i8")
    for turn in range(1, 50):
        comm.Barrier()
        if comm.rank == 1:
            while told[0] != turn:
                pass
            assert (memory[:100] == turn).all()
            assert memory[200] == 0
            memory[100:200] = turn
            comm.Barrier()
            while told[0] != -turn:
                pass
        else:
            into = np.zeros(100, "u1")
            win.Lock_all()
            win.Put(np.full(100, turn, "u1"), 1)
            win.Flush(1)
            told[0] = turn
            comm.Barrier()
            win.Get(into, 1, 100)
            win.Flush(1)
            assert (into == turn).all()
            win.Unlock_all()
            told[0] = -turn
    win.Free()


@pytest.mark.ompy(2, mca=PATIENT)
def test_memory_that_a_get_is_for_stays_until_it_has_come_and_no_longer(comm):
    win, _ = over_ordinary_memory(comm, 64)
    if comm.rank == 0:
        into = np.zeros(64, "u1")
        gone = weakref.ref(into)
        win.Lock_all()
        win.Get(into, 1)
        del into
        gc.collect()
        assert gone() is not None
        win.Flush(1)
        gc.collect()
        assert gone() is None
        win.Unlock_all()
        comm.send(None, 1, 99)
    else:
        poll_until_told(comm)
    win.Free()


@pytest.mark.ompy(2, mca=PATIENT)
def test_a_finaliser_that_a_completed_get_sets_off_may_access_the_window(comm):
    class Array(np.ndarray):
        def __del__(self):
            if self.base is None and self.size == 64:
                win.Put(np.full(1, 7, "u1"), 1)

    win, memory = over_ordinary_memory(comm, 64)
    if comm.rank == 0:
        into = np.zeros(64, "u1").view(Array).copy()
        win.Lock_all()
        win.Get(into, 1)
        del into
        win.Flush(1)
        win.Unlock_all()
        comm.send(None, 1, 99)
    else:
        poll_until_told(comm)
        assert memory[0] == 7
    win.Free()


@pytest.mark.ompy(2, mca=PATIENT)
def test_a_child_of_the_origin_leaves_its_orders_alone(comm):
    """The order is the parent's, who waits for it."""
    win, memory = over_ordinary_memory(comm, 64)
    if comm.rank == 0:
        win.Lock_all()
        for turn in range(20):
            win.Put(np.full(64, turn, "u1"), 1)
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
            win.Flush(1)
        win.Unlock_all()
        comm.send(None, 1, 99)
    else:
        poll_until_told(comm)
        assert (memory == 19).all()
    win.Free()


@pytest.mark.ompy(2, mca={"osc": "sm"})
def test_order_upon_order_while_the_target_comes_and_goes(comm, ompy_seed):
    win, memory = over_ordinary_memory(comm, 8 * 1000)
    if comm.rank == 0:
        dice, model = random.Random(ompy_seed), np.zeros(1000, "i8")
        win.Lock_all()
        for number in range(1, 20000):
            place = dice.randrange(1000)
            if dice.random() < 0.5:
                win.Put(np.full(1, number), 1, 8 * place)
                model[place] = number
                if dice.random() < 0.3:
                    win.Flush(1)
            else:
                into = np.zeros(1, "i8")
                win.Flush(1)
                win.Get(into, 1, 8 * place)
                win.Flush_local(1)
                assert into[0] == model[place], f"seed {ompy_seed}"
        win.Unlock_all()
        comm.send(model, 1, 99)
    else:
        request = comm.irecv(source=0, tag=99)
        dice = random.Random(ompy_seed + 1)
        while not request.Get_status():
            end = time.monotonic() + dice.choice([0, 0, 1e-5, 1e-4, 1e-3])
            while time.monotonic() < end:
                pass
        assert (memory.view("i8") == request.wait()).all(), f"seed {ompy_seed}"
    win.Free()
