"""Windows on Puma portals: the targets' kernels serve them."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from accessing import accesses, accumulate_pairs
from attaching import attach_at_random

from ompy import MPI
from ompy.mca import selection

PORTALS = {"osc": "portals"}
WAYS = {
    "shared memory": PORTALS,
    "tcp": {**PORTALS, "btl": "zmq,self"},
    "pieces": {**PORTALS, "btl_sm_max_send_size": 512, "btl_sm_eager_limit": 256, "btl_sm_single_copy": "none"},
    "matching by the kernel too": {**PORTALS, "pml": "cm", "mtl": "portals", "coll": "portals,basic"},
}
TARGET = 1


@pytest.mark.ompy(2, 3, mca=WAYS["shared memory"])
def test_over_shared_memory(comm, ompy_seed):
    accesses(comm, "portals")
    attach_at_random(comm, ompy_seed)


@pytest.mark.ompy(2, mca=WAYS["shared memory"])
def test_pairs_accumulate(comm):
    accumulate_pairs(comm)


@pytest.mark.ompy(2, 3, mca=WAYS["tcp"])
def test_over_tcp(comm, ompy_seed):
    accesses(comm, "portals")
    attach_at_random(comm, ompy_seed)


@pytest.mark.ompy(2, 3, mca=WAYS["pieces"])
def test_in_pieces(comm, ompy_seed):
    accesses(comm, "portals")
    attach_at_random(comm, ompy_seed)


@pytest.mark.ompy(2, 3, mca=WAYS["matching by the kernel too"])
def test_beside_others_who_use_portals(comm, ompy_seed):
    accesses(comm, "portals")
    attach_at_random(comm, ompy_seed)


@pytest.mark.ompy(1, 2, mca=PORTALS)
def test_a_rank_alone_has_windows_too(comm):
    memory = np.zeros(4)
    win = MPI.Win.Create(memory, 8, comm=MPI.COMM_SELF)
    win.Lock(0)
    win.Put(np.ones(1), 0, 1)
    win.Accumulate(np.ones(2), 0, 1)
    win.Unlock(0)
    win.Free()
    assert memory.tolist() == [0, 2, 1, 0]


def window_of(comm, flavor):
    """(window, displacement of its first word, one word in displacements)."""
    if flavor == "allocate":
        return MPI.Win.Allocate(1 << 20, 8, comm=comm), 0, 1
    memory = np.zeros(1 << 17, "i8")
    if flavor == "create":
        return MPI.Win.Create(memory, 8, comm=comm), 0, 1
    window = MPI.Win.Create_dynamic(comm=comm)
    window.Attach(memory)
    return window, comm.bcast(MPI.Get_address(memory), TARGET), 8


@pytest.mark.ompy(2, 3, mca=PORTALS)
@pytest.mark.parametrize("flavor", ["allocate", "create", "dynamic"])
def test_accesses_end_while_their_target_computes(comm, flavor, tmp_path):
    win, start, word = window_of(comm, flavor)
    assert win.Get_info()["ompy_target_progress"] == "thread"
    comm.Barrier()
    marks = [tmp_path / f"done-{rank}" for rank in range(comm.size) if rank != TARGET]
    if comm.rank == TARGET:
        # Not a call of MPI until the others have all that they want.
        while not all(mark.exists() for mark in marks):
            sum(range(100))
    else:
        one, got = np.ones(1, "i8"), np.zeros(1 << 16, "i8")
        mine = start + (1 + comm.rank << 14) * word
        win.Lock(TARGET, MPI.LOCK_SHARED)
        win.Put(np.arange(10000), TARGET, mine)
        win.Flush(TARGET)
        win.Get(got[:10000], TARGET, mine)
        win.Flush(TARGET)
        assert (got[:10000] == np.arange(10000)).all()
        win.Fetch_and_op(one, got[:1], TARGET, mine + 7 * word)
        win.Compare_and_swap(one, np.array([8]), got[1:2], TARGET, mine + 7 * word)
        win.Accumulate(one, TARGET, start)
        win.Unlock(TARGET)
        assert got[:2].tolist() == [7, 8]
        win.Lock(TARGET, MPI.LOCK_EXCLUSIVE)
        win.Get(got[:1], TARGET, mine + 7 * word)
        win.Unlock(TARGET)
        assert got[0] == 1
        (tmp_path / f"done-{comm.rank}").touch()
    total = np.zeros(1, "i8")
    win.Lock(TARGET, MPI.LOCK_SHARED)
    win.Get(total, TARGET, start)
    win.Unlock(TARGET)
    assert total[0] == comm.size - 1
    win.Free()


@pytest.mark.ompy(3, mca=PORTALS)
def test_windows_count_their_own_posts(comm, ompy_rng):
    """Descriptors are used again, and their counters are never set back."""
    everybody = comm.Get_group()
    others = everybody.Excl([comm.rank])
    for _ in range(5):
        wins = [MPI.Win.Allocate(8 * comm.size, 8, comm=comm) for _ in range(3)]
        for group in (others, everybody):
            for win in ompy_rng.sample(wins, 3):
                win.Post(group)
                win.Start(group)
                for rank in range(comm.size):
                    if rank != comm.rank or group is everybody:
                        win.Put(np.full(1, comm.rank + 1.0), rank, comm.rank)
                win.Complete()
                while not win.Test():
                    pass
                memory = np.frombuffer(win.tomemory())
                assert all(memory[rank] == rank + 1 for rank in range(comm.size) if rank != comm.rank or group is everybody)
                memory[:] = 0
        for win in wins:
            win.Free()


@pytest.mark.ompy(2, mca=PORTALS)
def test_the_thread_goes_with_the_last_window(comm):
    def has_thread():
        return "ompy-progress" in [thread.name for thread in threading.enumerate()]

    assert not has_thread()
    wins = [MPI.Win.Allocate(8, comm=comm) for _ in range(3)]
    for win in wins:
        assert has_thread()
        win.Free()
    assert not has_thread()


@pytest.mark.ompy(2, mca={"osc": "portals", "osc_portals_regions": 16})
def test_who_attaches_more_than_there_is_room_for_is_told(comm):
    win = MPI.Win.Create_dynamic(comm=comm)
    memory = np.zeros((1000, 8))
    with pytest.raises(MPI.Exception, match="no more regions of memory than there are now: set osc_portals_regions higher"):
        list(map(win.Attach, memory))
    comm.Barrier()
    win.Free()


@pytest.mark.ompy(2, mca=PORTALS | {"btl": "self,tcp"})
def test_an_access_to_more_blocks_than_may_be_under_way_at_once_is_whole(comm):
    count = 150_000
    win = MPI.Win.Allocate(4 * count, 2, comm=comm)
    memory = np.frombuffer(win.tomemory(), "i2")
    spread = MPI.SHORT.Create_vector(count, 1, 2).Commit()
    data, got = np.arange(count, dtype="i2"), np.zeros(count, "i2")
    memory[:] = 0
    win.Fence()
    if comm.rank == 0:
        win.Put(data, 1, (0, 1, spread))
    win.Fence()
    if comm.rank == 0:
        win.Accumulate(data, 1, (0, 1, spread))
    win.Fence()
    if comm.rank == 0:
        win.Get(got, 1, (0, 1, spread))
    win.Fence()
    assert comm.rank == 1 or (got == data + data).all()
    assert comm.rank == 0 or ((memory[::2] == data + data).all() and not memory[1::2].any())
    win.Free()


@pytest.mark.ompy(2)
def test_nobody_has_them_who_did_not_ask(comm):
    MPI.Win.Allocate(8, comm=comm).Free()
    verdict = next(it for it in selection.verdicts("osc") if it.component == "portals")
    assert "serves only where it is named" in verdict.reason
