"""Windows whose processes share a host: accesses need nothing of their targets, and nothing of a window is left."""

from __future__ import annotations

import random
from time import monotonic

import numpy as np
import pytest
from attaching import attach_at_random
from late_signals import until_late

from ompy import MPI
from ompy.mca import selection

FLAVORS = ("allocate", "shared", "create")


def window_of(flavor, comm, count):
    """A window of so many doubles, and the memory."""
    if flavor == "create":
        memory = np.zeros(count)
        return MPI.Win.Create(memory, 8, comm=comm), memory
    make = MPI.Win.Allocate if flavor == "allocate" else MPI.Win.Allocate_shared
    win = make(8 * count, 8, comm=comm)
    return win, np.frombuffer(win.tomemory())


def verdicts():
    return {verdict.component: (verdict.chosen, verdict.reason) for verdict in selection.verdicts("osc")}


@pytest.mark.ompy(1, 3)
@pytest.mark.parametrize("flavor", FLAVORS)
def test_shared_memory_serves_where_it_can(comm, flavor):
    win, _ = window_of(flavor, comm, 1)
    assert verdicts()["sm"][0]
    win.Free()
    win = MPI.Win.Create_dynamic(comm=comm)
    assert verdicts()["sm"][0]
    win.Free()


@pytest.mark.ompy(2, mca={"btl": "self,zmq"})
def test_without_a_shared_heap_messages_serve(comm):
    win, _ = window_of("allocate", comm, 1)
    assert verdicts()["pt2pt"][0]
    assert verdicts()["sm"] == (False, "rank 0 has no shared heap (btl/sm makes it)")
    win.Free()


@pytest.mark.ompy(2, mca={"osc_sm_single_copy": "none"})
def test_where_the_kernel_may_not_copy_all_ranks_choose_alike(comm):
    """Rank 1 alone has memory outside of the heap."""
    memory = np.frombuffer(MPI.Alloc_mem(80000)) if comm.rank == 0 else np.zeros(10000)
    win = MPI.Win.Create(memory, 8, comm=comm)
    assert verdicts()["pt2pt"][0]
    assert "rank 0 can't get at another one's memory" in verdicts()["sm"][1]
    win.Fence()
    win.Put(np.full(1, 5.0), 1 - comm.rank)
    win.Fence()
    assert memory[0] == 5
    win.Free()
    win = MPI.Win.Create_dynamic(comm=comm)
    assert verdicts()["pt2pt"][0]
    assert "can't get at all that another one may attach" in verdicts()["sm"][1]
    win.Free()


@pytest.mark.ompy(2)
@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_target_that_computes_is_not_needed(comm, flavor):
    """It looks at its memory and calls nothing of MPI's until it has seen everything."""
    win, memory = window_of(flavor, comm, 20000)
    comm.Barrier()
    if comm.rank == 0:
        spread = MPI.DOUBLE.Create_vector(3, 1, 2).Commit()
        old = np.zeros(1)
        win.Lock(1)
        win.Put(np.full(10000, 2.0), 1, 10)
        win.Put(np.full(3, 3.0), 1, (0, 1, spread))
        win.Accumulate(np.full(3, 4.0), 1, (0, 1, spread))
        win.Fetch_and_op(np.full(1, 1.0), old, 1, 6)
        win.Compare_and_swap(np.full(1, 9, "i8"), np.zeros(1, "i8"), np.zeros(1, "i8"), 1, 7)
        win.Unlock(1)
        win.Lock(1)
        win.Put(np.full(1, 8.0), 1, 19999)
        win.Unlock(1)
        comm.Recv(bytearray(1), 1)
        spread.Free()
    else:
        end = monotonic() + 10
        while memory[19999] != 8 and monotonic() < end:
            pass
        assert memory[:7].tolist() == [7, 0, 7, 0, 7, 0, 1]
        assert memory[7:8].view("i8")[0] == 9
        assert (memory[10:10010] == 2).all()
        comm.Send(b"x", 0)
    win.Free()


@pytest.mark.ompy(2)
@pytest.mark.parametrize("heap", [True, False])
def test_a_target_that_computes_is_not_needed_for_what_it_has_attached(comm, heap):
    win = MPI.Win.Create_dynamic(comm=comm)
    memory = np.frombuffer(MPI.Alloc_mem(8000)) if heap else np.zeros(1000)
    memory[:] = 0
    win.Attach(memory)
    places = comm.allgather(MPI.Get_address(memory))
    comm.Barrier()
    if comm.rank == 0:
        old = np.zeros(1)
        win.Lock(1)
        win.Put(np.full(900, 2.0), 1, places[1] + 80)
        win.Accumulate(np.full(3, 4.0), 1, places[1] + 80)
        win.Fetch_and_op(np.full(1, 1.0), old, 1, places[1] + 80)
        win.Put(np.full(1, 8.0), 1, places[1] + 7992)
        win.Unlock(1)
        assert old[0] == 6
        comm.Recv(bytearray(1), 1)
    else:
        end = monotonic() + 10
        while memory[999] != 8 and monotonic() < end:
            pass
        assert memory[8:15].tolist() == [0, 0, 7, 6, 6, 2, 2]
        comm.Send(b"x", 0)
    win.Free()


@pytest.mark.ompy(2, 3)
def test_what_comes_and_goes_of_a_dynamic_window_is_seen_at_once(comm, ompy_seed):
    attach_at_random(comm, ompy_seed)


@pytest.mark.ompy(2, 3)
@pytest.mark.parametrize("flavor", FLAVORS)
def test_accumulates_of_every_length_and_type_are_atomic(comm, flavor, ompy_seed):
    """Single elements, vectors, spread ones and exchanges into the same memory: nothing of the sum is lost."""
    dice = random.Random(ompy_seed + comm.rank)
    win, memory = window_of(flavor, comm, 600)
    whole = memory.view("i8")
    spread = MPI.LONG.Create_vector(100, 1, 3).Commit()
    added = np.zeros((comm.size, 600), "i8")
    win.Lock_all()
    for _ in range(200):
        target, start, old = dice.randrange(comm.size), dice.randrange(300), np.zeros(300, "i8")
        kind = dice.choice(["one", "many", "spread", "fetch", "swap"])
        if kind == "one":
            win.Fetch_and_op(np.ones(1, "i8"), old[:1], target, start)
            added[target, start] += 1
        elif kind == "many":
            win.Accumulate(np.ones(300, "i8"), target, start)
            added[target, start : start + 300] += 1
        elif kind == "fetch":
            win.Get_accumulate(np.ones(300, "i8"), old, target, start)
            added[target, start : start + 300] += 1
        elif kind == "spread":
            win.Accumulate(np.ones(100, "i8"), target, (start, 1, spread))
            added[target, start : start + 300 : 3] += 1
        else:
            known = np.zeros(1, "i8")
            while True:
                win.Compare_and_swap(known + 1, known, old[:1], target, start)
                win.Flush(target)
                if old[0] == known[0]:
                    break
                known[:] = old[:1]
            added[target, start] += 1
    win.Unlock_all()
    total = comm.allreduce(added)
    assert (whole == total[comm.rank]).all(), f"seed {ompy_seed}"
    win.Free()
    spread.Free()


@pytest.mark.ompy(3)
def test_short_accumulates_come_between_the_pieces_of_a_long_one(comm):
    """Rank 2 adds to the first element, then to the last; only who reads in pieces ever finds more in the last one."""
    count = 1 << 18
    win = MPI.Win.Allocate(8 * count, 8, MPI.Info.Create({"mpi_accumulate_granularity": "10000"}), comm)
    one, old = np.ones(1, "i8"), np.zeros(count, "i8")
    win.Lock_all()
    comm.Barrier()
    if comm.rank == 1:
        while old[-1] <= old[0]:
            win.Get_accumulate(old, old, 0, op=MPI.NO_OP)
        comm.send(None, 2)
    elif comm.rank == 2:
        while not comm.Iprobe(1):
            win.Accumulate(one, 0, 0)
            win.Accumulate(one, 0, count - 1)
        comm.recv(source=1)
    win.Unlock_all()
    win.Free()


@pytest.mark.ompy(2)
def test_an_exception_ends_the_wait_for_a_lock_and_nothing_is_held(comm):
    win, memory = window_of("allocate", comm, 1)

    if comm.rank == 0:
        win.Lock(0)
        comm.Barrier()
        comm.Recv(bytearray(1), 1)
        win.Unlock(0)
        comm.Barrier()
        for kind in (MPI.LOCK_EXCLUSIVE, MPI.LOCK_SHARED):
            win.Lock(0, kind)
            win.Unlock(0)
    else:
        comm.Barrier()
        for kind in (MPI.LOCK_EXCLUSIVE, MPI.LOCK_SHARED):
            for call in (lambda kind=kind: win.Lock(0, kind), win.Lock_all):
                until_late(call)
        with pytest.raises(MPI.Exception, match="has not locked"):
            win.Unlock(0)
        win.Lock(1)
        win.Unlock(1)
        comm.Send(b"x", 0)
        comm.Barrier()
        win.Lock(0)
        win.Put(np.full(1, 1.0), 0)
        win.Unlock(0)
    comm.Barrier()
    assert comm.rank or memory[0] == 1
    win.Free()


@pytest.mark.ompy(2)
def test_a_communicator_may_go_before_its_window(comm):
    mine = comm.Dup()
    win, memory = window_of("allocate", mine, 1)
    mine.Free()
    win.Fence()
    win.Put(np.full(1, 3.0), 1 - comm.rank)
    win.Fence()
    assert memory[0] == 3
    win.Free()


@pytest.mark.ompy(1, 2)
def test_a_window_without_locks_refuses_them(comm):
    info = MPI.Info.Create({"no_locks": "true"})
    win = MPI.Win.Allocate(8, info=info, comm=comm)
    for call in (lambda: win.Lock(0), win.Lock_all):
        with pytest.raises(MPI.Exception, match="no_locks") as caught:
            call()
        assert caught.value.Get_error_class() == MPI.ERR_RMA_SYNC
    win.Fence()
    win.Free()
    info.Free()


@pytest.mark.ompy(2)
@pytest.mark.parametrize("flavor", ["allocate", "shared"])
def test_copies_as_long_as_the_caches_move_every_byte_and_no_other(comm, flavor, ompy_seed):
    """Of lengths around where steps and blocks begin and end; each twice, as they begin at either end in turns."""
    dice, guard, most = random.Random(ompy_seed), 64, (8 << 20) + 1
    make = MPI.Win.Allocate if flavor == "allocate" else MPI.Win.Allocate_shared
    win = make(most + 3 * guard if comm.rank else 0, 1, comm=comm)
    win.Lock_all()
    comm.Barrier()
    if comm.rank == 0:
        for nbytes in 2 * [
            *((32 << 10) + beyond for beyond in (-1, 0, 1, 63, 64, 191)),
            *((512 << 10) + beyond for beyond in (-1, 0, 1)),
            *((1 << 20) - 65535, (1 << 20) + 13, 8 << 20, most),
        ]:
            first = guard + dice.randrange(guard)
            data = np.frombuffer(dice.randbytes(nbytes), "u1")
            around = np.full(nbytes + 2 * guard, dice.randrange(256), "u1")
            found = np.zeros_like(around)
            win.Put(around, 1, first - guard)
            win.Put(data, 1, first)
            win.Flush(1)
            win.Get(found, 1, first - guard)
            win.Flush(1)
            around[guard:-guard] = data
            assert (found == around).all(), f"seed {ompy_seed}, {nbytes} bytes"
    win.Unlock_all()
    win.Free()
