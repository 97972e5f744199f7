"""What one-sided calls refuse before anything is moved, whatever component serves the window."""

import numpy as np
import pytest

from ompy import MPI


def refused(error_class, words, call, *arguments, **options):
    with pytest.raises(MPI.Exception, match=words) as caught:
        call(*arguments, **options)
    assert caught.value.Get_error_class() == error_class


def locked_window(comm, memory):
    win = MPI.Win.Create(memory, memory.itemsize, comm=comm)
    win.Lock_all()
    return win


def close(win):
    win.Unlock_all()
    win.Free()


def fetches_into_its_origin(comm):
    memory, both = np.zeros(8, "i8"), np.arange(1, 9)
    win = locked_window(comm, memory)
    for rank in range(comm.size):
        words = "result: it overlaps origin"
        refused(MPI.ERR_BUFFER, words, win.Get_accumulate, both, both, rank)
        refused(MPI.ERR_BUFFER, words, win.Rget_accumulate, both[:4], both[3:7], rank)
        refused(MPI.ERR_BUFFER, words, win.Fetch_and_op, both[:1], both[:1], rank)
        refused(MPI.ERR_BUFFER, words, win.Compare_and_swap, both[:1], both[1:2], both[:1], rank)
        every_third = MPI.LONG.Create_vector(2, 1, 3).Commit()
        refused(MPI.ERR_BUFFER, words, win.Get_accumulate, [both, 1, every_third], both[3:5], rank, (0, 2, MPI.LONG))
    comm.Barrier()
    assert not memory.any()
    assert (both == np.arange(1, 9)).all()
    close(win)


def fetches_beside_its_origin(comm):
    """Neighbours, pieces in the gaps of others, no elements, and an origin that is not looked at."""
    memory, both = np.zeros(8, "i8"), np.arange(1, 9)
    win = locked_window(comm, memory)
    every_other = MPI.LONG.Create_vector(2, 1, 2).Commit()  # 0 and 2, between which the result's first piece lies
    every_third = MPI.LONG.Create_vector(2, 1, 3).Commit()
    win.Get_accumulate(both[:4], both[4:], comm.rank)
    win.Flush(comm.rank)
    assert (both == [1, 2, 3, 4, 0, 0, 0, 0]).all()
    win.Get_accumulate([both, 1, every_other], [both[1:], 1, every_third], comm.rank, (0, 2, MPI.LONG))
    win.Flush(comm.rank)
    assert (both == [1, 1, 3, 4, 2, 0, 0, 0]).all()
    win.Get_accumulate([both, 0, MPI.LONG], [both, 0, MPI.LONG], comm.rank)
    win.Fetch_and_op(both[:1], both[:1], comm.rank, 3, MPI.NO_OP)
    win.Flush(comm.rank)
    assert both[0] == 4
    close(win)


def swaps_what_has_no_bytes_of_its_own(comm):
    memory = np.zeros(64, "u1")
    win = locked_window(comm, memory)
    pair = MPI.INT.Create_contiguous(2).Commit()
    for datatype, name in ((MPI.DOUBLE, "MPI_DOUBLE"), (MPI.C_FLOAT_COMPLEX, "MPI_C_FLOAT_COMPLEX"),
                           (MPI.DOUBLE_INT, "MPI_DOUBLE_INT"), (pair, "a derived datatype")):  # fmt: skip
        one, other, old = ([bytearray(16), 1, datatype] for _ in range(3))
        refused(MPI.ERR_TYPE, f"origin: .* not {name}", win.Compare_and_swap, one, other, old, comm.rank)
    for datatype in (MPI.BYTE, MPI.AINT, MPI.LOGICAL, MPI.INTEGER8, MPI.C_BOOL, MPI.UINT16_T):
        one, other, old = ([bytearray(16), 1, datatype] for _ in range(3))
        win.Compare_and_swap(one, other, old, comm.rank)
    close(win)


def moves_what_is_not_committed(comm):
    memory, both = np.zeros(8, "i8"), np.ones(8, "i8")
    win = locked_window(comm, memory)
    pair = MPI.LONG.Create_contiguous(2)
    typed, words = [both[:2], 1, pair], "its datatype is not committed"
    for name in ("Put", "Get", "Accumulate", "Rput", "Rget", "Raccumulate"):
        call = getattr(win, name)
        refused(MPI.ERR_TYPE, f"message: {words}", call, typed, comm.rank)
        refused(MPI.ERR_TYPE, f"target: {words}", call, both[:2], comm.rank, (0, 1, pair))
    refused(MPI.ERR_TYPE, f"message: {words}", win.Get_accumulate, both[2:4], typed, comm.rank, (0, 2))
    refused(MPI.ERR_TYPE, f"message: {words}", win.Put, [both[:2], 1, pair.Dup()], comm.rank)
    assert not memory.any()
    pair.Commit()
    win.Put([both[:2], 1, pair.Dup()], comm.rank)
    win.Flush(comm.rank)
    assert memory.sum() == 2
    close(win)


by_every_program = pytest.mark.parametrize(
    "program",
    [fetches_into_its_origin, fetches_beside_its_origin, swaps_what_has_no_bytes_of_its_own, moves_what_is_not_committed],
)


@pytest.mark.ompy(2, mca={"osc": "sm"})
@by_every_program
def test_in_place(comm, program):
    program(comm)


@pytest.mark.ompy(2, mca={"osc": "rdma"})
@by_every_program
def test_by_remote_access(comm, program):
    program(comm)


@pytest.mark.ompy(2, mca={"osc": "pt2pt"})
@by_every_program
def test_by_messages(comm, program):
    program(comm)


@pytest.mark.ompy(1, 2)
def test_ranks_and_assertions_that_there_are_none_of_are_refused(comm):
    win = MPI.Win.Allocate(8, 8, comm=comm)
    win.Lock_all()
    for flush in (win.Flush, win.Flush_local):
        for rank in (-1, -3, comm.size):
            refused(MPI.ERR_RANK, f"rank {rank}", flush, rank)
    win.Unlock_all()
    for assertion in (-1, 1 << 5, 1 << 20):
        words = f"got {assertion}"
        refused(MPI.ERR_ASSERT, words, win.Fence, assertion)
        refused(MPI.ERR_ASSERT, words, win.Lock, 0, MPI.LOCK_SHARED, assertion)
        refused(MPI.ERR_ASSERT, words, win.Lock_all, assertion)
        refused(MPI.ERR_ASSERT, words, win.Post, comm.group, assertion)
        refused(MPI.ERR_ASSERT, words, win.Start, comm.group, assertion)
    win.Fence(MPI.MODE_NOSTORE | MPI.MODE_NOPUT | MPI.MODE_NOPRECEDE | MPI.MODE_NOSUCCEED)
    win.Free()


@pytest.mark.ompy(1, 2)
def test_a_window_that_was_freed_through_another_handle_has_no_memory(comm):
    win = MPI.Win.Allocate(8, 8, comm=comm)
    other = MPI.Win(win)
    win.Free()
    for gone in (win, other):
        with pytest.raises(BufferError, match="has no memory"):
            memoryview(gone)


@pytest.mark.ompy(2, 3)
def test_memory_that_one_rank_has_none_of_is_an_error_on_every_rank(comm):
    for make in (MPI.Win.Allocate, MPI.Win.Allocate_shared):
        with pytest.raises(MPI.Exception, match=r"rank 0\b|no room") as raised:
            make(1 << 50 if comm.rank == 0 else 64, 1, comm=comm)
        assert raised.value.Get_error_class() == MPI.ERR_NO_MEM
    assert comm.allreduce(1) == comm.size


@pytest.mark.ompy(1)
def test_an_accumulate_that_would_do_nothing_is_refused(comm):
    """NO_OP is for what fetches (MPI-4.1, 12.3.4)."""
    win = locked_window(comm, np.zeros(1))
    for call in (win.Accumulate, win.Raccumulate):
        refused(MPI.ERR_OP, "op: NO_OP is for what fetches", call, np.zeros(1), 0, op=MPI.NO_OP)
    close(win)
