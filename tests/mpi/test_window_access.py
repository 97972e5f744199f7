"""Put, get, accumulates: what they do to memory, for every kind of data and on every rank."""

import numpy as np
import pytest
from accessing import accumulate_pairs

from ompy import MPI

# Data that travels with its order, and data that goes as a message of its own.
COUNTS = (1, 100, 20000)


def check_put_then_get(comm, count):
    memory = np.full(comm.size * count, -1.0)
    win = MPI.Win.Create(memory, memory.itemsize, comm=comm)
    sent = np.arange(count) + 1000.0 * comm.rank
    win.Fence()
    for rank in range(comm.size):
        win.Put(sent, rank, comm.rank * count)
    win.Fence()
    for rank in range(comm.size):
        assert (memory[rank * count : (rank + 1) * count] == np.arange(count) + 1000.0 * rank).all()
    got = np.zeros((comm.size, count))
    for rank in range(comm.size):
        win.Get(got[rank], rank, (comm.rank * count, count, MPI.DOUBLE))
    win.Fence()
    assert (got == sent).all()
    win.Free()


@pytest.mark.ompy(1, 2, 3)
def test_put_then_get(comm):
    for count in COUNTS:
        check_put_then_get(comm, count)


@pytest.mark.ompy(1, 2)
@pytest.mark.parametrize("columns", [1, 60])
def test_different_types_on_both_sides(comm, columns):
    """A column block of the origin's matrix becomes rows of every third element at the target."""
    rows, width = 100, 64
    matrix = np.arange(rows * width, dtype="i4").reshape(rows, width)
    block = MPI.INT.Create_subarray([rows, width], [rows, columns], [0, 2]).Commit()
    spread = MPI.INT.Create_vector(rows * columns, 1, 3).Commit()
    memory = np.full(3 * rows * columns + 5, -1, "i4")
    win = MPI.Win.Create(memory, 4, comm=comm)
    target = (comm.rank + 1) % comm.size
    win.Fence()
    win.Put([matrix, 1, block], target, (5, 1, spread))
    win.Fence()
    assert (memory[5::3] == matrix[:, 2 : 2 + columns].ravel()).all()
    assert (memory[:5] == -1).all()
    assert (memory[6::3] == -1).all()
    back = np.zeros_like(matrix)
    win.Get([back, 1, block], target, (5, 1, spread))
    win.Fence()
    assert (back[:, 2 : 2 + columns] == matrix[:, 2 : 2 + columns]).all()
    assert (back[:, :2] == 0).all()
    win.Free()
    block.Free()
    spread.Free()


def check_accumulates_of_all_ranks_add_up(comm, count):
    memory = np.zeros(count, "i8")
    win = MPI.Win.Create(memory, 8, comm=comm)
    win.Fence()
    for target in range(comm.size):
        for _ in range(3):
            win.Accumulate(np.full(count, comm.rank + 1), target)
    win.Fence()
    assert (memory == 3 * sum(range(comm.size + 1))).all()
    win.Free()


@pytest.mark.ompy(1, 3)
def test_accumulates_of_all_ranks_add_up(comm):
    for count in COUNTS:
        check_accumulates_of_all_ranks_add_up(comm, count)


EXPECTED = {
    "SUM": 13, "PROD": 30, "MAX": 10, "MIN": 3, "BAND": 10 & 3, "BOR": 10 | 3, "BXOR": 10 ^ 3,
    "LAND": 1, "LOR": 1, "LXOR": 0, "REPLACE": 3, "NO_OP": 10,
}  # fmt: skip


@pytest.mark.ompy(1, 2)
def test_every_operation(comm):
    memory = np.zeros(4, "i8")
    win = MPI.Win.Create(memory, 8, comm=comm)
    target = (comm.rank + 1) % comm.size
    for name, expected in EXPECTED.items():
        memory[:] = 10
        old = np.zeros(3, "i8")
        win.Fence()
        win.Get_accumulate(np.full(3, 3), old, target, 1, getattr(MPI, name))
        win.Fence()
        assert old.tolist() == [10, 10, 10], name
        assert memory.tolist() == [10, expected, expected, expected], name
    win.Free()


@pytest.mark.ompy(1, 2)
def test_pairs_and_spread_elements_accumulate(comm):
    target = (comm.rank + 1) % comm.size
    pair = np.dtype([("value", "f8"), ("index", "i4")], align=True)
    memory = np.zeros(2, pair)
    memory["value"] = 1.0, 9.0
    offered = np.zeros(2, pair)
    offered["value"], offered["index"] = 5.0, 7
    win = MPI.Win.Create(memory, pair.itemsize, comm=comm)
    win.Fence()
    win.Accumulate([offered, 2, MPI.DOUBLE_INT], target, op=MPI.MAXLOC)
    win.Fence()
    assert memory["value"].tolist() == [5.0, 9.0]
    assert memory["index"].tolist() == [7, 0]
    win.Free()

    numbers = np.arange(10.0)
    third = MPI.DOUBLE.Create_vector(3, 1, 3).Commit()
    win = MPI.Win.Create(numbers, 8, comm=comm)
    win.Fence()
    win.Accumulate(np.full(3, 100.0), target, (1, 1, third))
    win.Fence()
    assert numbers.tolist() == [0, 101, 2, 3, 104, 5, 6, 107, 8, 9]
    win.Free()
    third.Free()


@pytest.mark.ompy(1, 2, mca={"osc": "sm"})
def test_pairs_accumulate_in_shared_memory(comm):
    accumulate_pairs(comm)


@pytest.mark.ompy(1, 2, mca={"osc": "sm", "osc_sm_patience": 0})
def test_pairs_accumulate_in_an_image_of_the_target_s_memory(comm):
    accumulate_pairs(comm)


@pytest.mark.ompy(1, 2, mca={"osc": "pt2pt"})
def test_pairs_accumulate_by_messages(comm):
    accumulate_pairs(comm)


@pytest.mark.ompy(1, 3)
def test_fetch_and_op_hands_out_each_number_once(comm):
    win = MPI.Win.Allocate(8 if comm.rank == 0 else 0, 8, comm=comm)
    one, taken = np.ones(1, "i8"), []
    for _ in range(50):
        ticket = np.zeros(1, "i8")
        win.Lock(0, MPI.LOCK_SHARED)
        win.Fetch_and_op(one, ticket, 0)
        win.Unlock(0)
        taken.append(int(ticket[0]))
    assert taken == sorted(taken)
    everything = [ticket for tickets in comm.allgather(taken) for ticket in tickets]
    assert sorted(everything) == list(range(50 * comm.size))
    win.Free()


@pytest.mark.ompy(1, 3)
def test_compare_and_swap_lets_one_rank_win(comm):
    memory = np.full(1, -1)
    win = MPI.Win.Create(memory, 8, comm=comm)
    found = np.zeros(1, "i8")
    win.Lock_all()
    win.Compare_and_swap(np.full(1, comm.rank), np.full(1, -1), found, comm.size - 1)
    win.Unlock_all()
    winners = [rank for rank, old in enumerate(comm.allgather(int(found[0]))) if old == -1]
    assert len(winners) == 1
    if comm.rank == comm.size - 1:
        assert memory[0] == winners[0]
    win.Free()


def check_accumulates_of_one_origin_keep_their_order(comm, count):
    """A short one must not overtake a long one on its way."""
    memory = np.zeros(count, "i8")
    win = MPI.Win.Create(memory, 8, comm=comm)
    target = (comm.rank + 1) % comm.size
    seen = np.zeros(1, "i8")
    win.Lock(target)
    for turn in range(5):
        win.Accumulate(np.full(count, turn), target, op=MPI.REPLACE)
        win.Get_accumulate(np.full(1, 100 + turn), seen, target, op=MPI.REPLACE)
        win.Flush(target)
        assert seen[0] == turn
    win.Unlock(target)
    comm.Barrier()
    assert memory[0] == 104
    assert (memory[1:] == 4).all()
    win.Free()


@pytest.mark.ompy(1, 2)
def test_accumulates_of_one_origin_keep_their_order(comm):
    for count in COUNTS:
        check_accumulates_of_one_origin_keep_their_order(comm, count)


def check_requests_complete_at_the_origin(comm, count):
    memory = np.zeros(count)
    win = MPI.Win.Create(memory, 8, comm=comm)
    target = (comm.rank + 1) % comm.size
    win.Lock_all()
    data = np.arange(float(count))
    win.Rput(data, target).Wait()
    data[:] = 1.0
    win.Flush(target)
    got, old = np.zeros(count), np.zeros(count)
    win.Rget(got, target).Wait()
    assert (got == np.arange(float(count))).all()
    win.Raccumulate(data, target).Wait()
    data[:] = 10.0
    win.Rget_accumulate(data, old, target).Wait()
    assert (old == np.arange(float(count)) + 1).all()
    win.Unlock_all()
    comm.Barrier()
    assert (memory == np.arange(float(count)) + 11).all()
    win.Free()


@pytest.mark.ompy(1, 2)
def test_requests_complete_at_the_origin(comm):
    for count in COUNTS:
        check_requests_complete_at_the_origin(comm, count)


@pytest.mark.ompy(2, mca={"osc": "pt2pt"})
def test_a_dynamic_window_over_messages_serves_what_is_attached(comm):
    win = MPI.Win.Create_dynamic(comm=comm)
    memory = np.zeros(10)
    win.Attach(memory)
    with pytest.raises(MPI.Exception) as caught:
        win.Attach(memory)
    assert caught.value.Get_error_class() == MPI.ERR_RMA_ATTACH
    there = comm.sendrecv(MPI.Get_address(memory), 1 - comm.rank)
    win.Lock(1 - comm.rank)
    win.Put(np.full(10, comm.rank + 1.0), 1 - comm.rank, there)
    win.Unlock(1 - comm.rank)
    comm.Barrier()
    assert (memory == 2 - comm.rank).all()
    win.Lock(1 - comm.rank)
    win.Put(np.full(10, 5.0), 1 - comm.rank, there + 8)
    with pytest.raises(MPI.Exception, match=f"rank {1 - comm.rank} has attached no memory") as caught:
        win.Flush(1 - comm.rank)
    assert caught.value.Get_error_class() == MPI.ERR_RMA_RANGE
    win.Get(np.zeros(1), 1 - comm.rank, there + 80)
    with pytest.raises(MPI.Exception, match="has attached no memory"):
        win.Unlock(1 - comm.rank)
    comm.Barrier()
    win.Detach(memory)
    assert (memory == 2 - comm.rank).all()
    win.Free()


@pytest.mark.ompy(1)
def test_memory_without_bytes_comes_and_goes_beside_memory_that_begins_where_it_does(comm):
    win = MPI.Win.Create_dynamic(comm=comm)
    memory, got = np.arange(4.0), np.zeros(4)
    nothing = [bytearray(), bytearray(), memory[:0]]
    win.Attach(memory)
    for empty in nothing:
        win.Attach(empty)
    for empty in nothing:
        win.Detach(empty)
    win.Lock(0)
    win.Get(got, 0, MPI.Get_address(memory))
    win.Flush(0)
    assert (got == memory).all()
    win.Attach(memory[:0])
    win.Detach(memory)
    with pytest.raises(MPI.Exception, match="has attached no memory"):
        win.Get(got, 0, MPI.Get_address(memory))
    win.Unlock(0)
    win.Detach(memory[:0])
    with pytest.raises(MPI.Exception) as caught:
        win.Detach(memory[:0])
    assert caught.value.Get_error_class() == MPI.ERR_ARG
    win.Free()


@pytest.mark.ompy(1, 2)
def test_what_is_wrong_is_named(comm):
    win = MPI.Win.Create(bytearray(40), 4, comm=comm)
    last = comm.size - 1
    win.Fence()

    def refused(error_class, words, call, *arguments, **named):
        with pytest.raises(MPI.Exception, match=words) as caught:
            call(*arguments, **named)
        assert caught.value.Get_error_class() == error_class

    four = np.zeros(4, "i4")
    refused(MPI.ERR_RMA_RANGE, f"displacement 7 .* byte 28 to 44 .* rank {last}, which has 40 bytes", win.Put, four, last, 7)
    refused(MPI.ERR_RMA_RANGE, "displacement", win.Get, four, last, 2**62)
    refused(MPI.ERR_DISP, "negative", win.Put, four, last, -1)
    refused(MPI.ERR_RANK, f"rank {comm.size}", win.Put, four, comm.size)
    refused(MPI.ERR_ARG, "16 bytes .* 12 bytes", win.Put, four, last, (0, 3, MPI.INT))
    refused(
        MPI.ERR_OP, "predefined operation expected", win.Accumulate, four, last, op=MPI.Op.Create(lambda a, b, datatype: None)
    )
    refused(MPI.ERR_OP, "BAND", win.Accumulate, four.astype("f4"), last, op=MPI.BAND)
    refused(MPI.ERR_TYPE, "one and the same", win.Accumulate, four, last, (0, 4, MPI.FLOAT))
    with pytest.raises(ValueError, match="target"):
        win.Put(four, last, {})
    win.Put(None, MPI.PROC_NULL)
    assert win.Rput(None, MPI.PROC_NULL).Wait()
    win.Fence()
    win.Free()


@pytest.mark.ompy(2, mca={"osc": "pt2pt"})
def test_accesses_that_nobody_has_waited_for_cost_the_same_when_they_are_many(comm):
    """131,072 in each direction: if each one were looked for among all of them, this would take minutes."""
    many, other = 1 << 17, 1 - comm.rank
    win = MPI.Win.Allocate(8, 8, comm=comm)
    memory = np.frombuffer(win.tomemory(), "i8")
    ones, old = np.ones(1, "i8"), np.full(many, -1)
    win.Fence()
    for place in range(many):
        win.Fetch_and_op(ones, old[place : place + 1], other, 0)
    win.Fence()
    assert memory[0] == many
    assert (old == np.arange(many)).all()
    few = many // 8
    for place in range(few):
        win.Get(old[place : place + 1], other, 0)
    win.Fence()
    assert (old[:few] == many).all()
    win.Free()
