"""What several tests do: memory comes and goes, and its neighbour sees what there is."""

from __future__ import annotations

import random

import numpy as np
import pytest
from accessing import poll_until_told

from ompy import MPI


def attach_at_random(comm, seed):
    """Each rank attaches and detaches slices of its memory at random; its neighbour is told where there is some."""
    dice = random.Random(seed + comm.rank)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    win = MPI.Win.Create_dynamic(comm=comm)
    memory = np.arange(40000.0)
    attached = {}
    win.Lock_all()
    for turn in range(30):
        for _ in range(dice.randrange(1, 60)):
            if attached and dice.random() < 0.3:
                win.Detach(attached.pop(dice.choice(list(attached))))
                continue
            start, length = dice.randrange(39000), dice.randrange(1, 1000 if turn % 3 else 10)
            part = memory[start : start + length]
            if any(start < other + len(there) and other < start + length for other, there in attached.items()):
                with pytest.raises(MPI.Exception) as caught:
                    win.Attach(part)
                assert caught.value.Get_error_class() == MPI.ERR_RMA_ATTACH
            else:
                win.Attach(part)
                attached[start] = part
        told = [(start, len(part)) for start, part in attached.items()]
        theirs, base = comm.sendrecv((told, MPI.Get_address(memory)), left, source=right)
        there = np.zeros(40000, bool)
        for start, length in theirs:
            there[start : start + length] = True
        for _ in range(20):
            at, count = dice.randrange(39000), dice.randrange(1, 100)
            got = np.zeros(count)
            if there[at : at + count].all():
                win.Get(got, right, base + 8 * at)
                win.Flush(right)
                assert (got == np.arange(at, at + count)).all(), f"seed {seed}"
            else:
                with pytest.raises(MPI.Exception) as caught:
                    win.Get(got, right, base + 8 * at)
                assert caught.value.Get_error_class() == MPI.ERR_RMA_RANGE
                assert not got.any(), f"seed {seed}"
        comm.Barrier()
    win.Unlock_all()
    win.Free()


ELEMENTS = 40_000


def pieces_of(attached, base, other):
    """Elements that do not lie in one stretch: (displacement, count, datatype, index of each, first in one array, then in the
    other)."""
    number, far = MPI.LONG, ELEMENTS
    middle, end, again = attached
    yield base + 8 * (middle - 2), 5, number, range(middle - 2, middle + 3)
    yield base + 8 * middle, 1, number, range(middle, middle + 1)
    yield base + 8, end - 2, number, range(1, end - 1)
    start, rows = middle - 7, number.Create_vector(5, 3, 4)
    yield base + 8 * start, 1, rows, [start + 4 * i + j for i in range(5) for j in range(3)]
    two = number.Create_hindexed([4, 4], [0, 8 * (again - middle + 2)])
    yield base + 8 * (middle - 2), 1, two, [*range(middle - 2, middle + 2), *range(again, again + 4)]
    back = number.Create_hindexed_block(1, [8 * again, 8 * middle]).Create_resized(0, 16)
    yield base, 3, back, [again, middle, again + 2, middle + 2, again + 4, middle + 4]
    down = number.Create_resized(0, -8)
    yield base + 8 * (middle + 4), 9, down, range(middle + 4, middle - 5, -1)
    columns = number.Create_vector(250, 1, 2).Create_hvector(2, 1, 8 * again)
    yield base, 1, columns, [start + 2 * i for start in (0, again) for i in range(250)]
    here_and_there = number.Create_hindexed([3, 5, 2], [base + 8 * (middle - 1), other + 8 * 7, base + 8 * again])
    yield 0, 1, here_and_there, [*range(middle - 1, middle + 2), *range(far + 7, far + 12), again, again + 1]
    yield other, 1, number.Create_hindexed([2, 2], [0, base - other]), [far, far + 1, 0, 1]


def access_pieces(comm, allocated):
    """Rank 0's accesses, to rank 1's memory and to its own, to elements in several stretches that are attached: some touch, and
    one border is within an element.  What is not attached between them is as it was."""
    memory, other = allocated(ELEMENTS), allocated(20)
    attached = middle, end, again = 10_000, 20_000, 30_000
    win = MPI.Win.Create_dynamic(comm=comm)
    octets = memory.view("u1")
    for part in (octets[: 8 * middle + 4], octets[8 * middle + 4 : 8 * end - 16], memory[end - 2 : end], memory[again:], other):
        win.Attach(part)
    both = np.arange(ELEMENTS + 20)
    memory[:], other[:] = both[:ELEMENTS], both[ELEMENTS:]
    places = comm.allgather((MPI.Get_address(memory), MPI.Get_address(other)))
    if comm.rank == 0:
        models = [both.copy() for _ in range(comm.size)]
        win.Lock_all()
        for target, model in enumerate(models):
            for displacement, count, datatype, indices in pieces_of(attached, *places[target]):
                access_elements(win, target, (displacement, count, datatype.Commit()), model, list(indices))
        win.Unlock_all()
        for rank in range(1, comm.size):
            comm.send(None, rank, 99)
            comm.send(models[rank], rank)
        model = models[0]
    else:
        poll_until_told(comm)
        model = comm.recv(source=0)
    assert (np.concatenate([memory, other]) == model).all()
    win.Free()


def access_elements(win, target, there, model, indices):
    """Each kind of access, from and to memory in one piece and not."""
    count = len(indices)
    for step in (1, 2):
        here = MPI.LONG.Create_vector(count, 1, step).Commit() if step > 1 else MPI.LONG.Create_contiguous(count).Commit()
        data, got = np.arange(count * step) + 5 * count * step, np.zeros(count * step, "i8")
        origin, result = [data, 1, here], [got, 1, here]
        win.Put(origin, target, there)
        win.Flush(target)
        win.Get(result, target, there)
        win.Flush(target)
        assert (got[::step] == data[::step]).all()
        win.Accumulate(origin, target, there)
        win.Get_accumulate(origin, result, target, there, op=MPI.MAX)
        win.Flush(target)
        assert (got[::step] == 2 * data[::step]).all()
        win.Rput(origin, target, there).Wait()
        win.Flush(target)
        win.Rget(result, target, there).Wait()
        assert (got[::step] == data[::step]).all()
        win.Accumulate([data[::-1].copy(), 1, here], target, there, op=MPI.REPLACE)
        win.Get_accumulate(origin, result, target, there, op=MPI.NO_OP)
        win.Flush(target)
        model[indices] = data[::-1][::step]
        assert (got[::step] == model[indices]).all()
        assert not got.reshape(count, step)[:, 1:].any()


def add_to_pieces(comm):
    """All ranks add to elements of rank 0's, one of which lies in two stretches, while others come and go."""
    memory, others = np.zeros(400, "i8"), np.zeros((20, 8))
    win = MPI.Win.Create_dynamic(comm=comm)
    octets = memory.view("u1")
    for part in (octets[:804], octets[804:1600], memory[300:]):
        win.Attach(part)
    base = comm.bcast(MPI.Get_address(memory))
    spread = MPI.LONG.Create_hindexed([4, 4], [8 * 98, 8 * 300]).Commit()
    win.Lock_all()
    for turn in range(60):
        if comm.rank == 0:
            win.Attach(others[turn % 20])
        win.Accumulate(np.ones(8, "i8"), 0, (base, 1, spread))
        win.Get_accumulate(np.ones(2, "i8"), np.zeros(2, "i8"), 0, base + 8 * 99)
        win.Fetch_and_op(np.ones(1, "i8"), np.zeros(1, "i8"), 0, base + 8 * 100)
        if comm.rank == 0:
            win.Detach(others[turn % 20])
    win.Unlock_all()
    comm.Barrier()
    if comm.rank == 0:
        each = 60 * comm.size
        assert memory[98:102].tolist() == [each, 2 * each, 3 * each, each]
        assert memory[300:304].tolist() == [each] * 4
        assert memory.sum() == 11 * each
    win.Free()


def miss_pieces(comm):
    """Rank 0's accesses to elements of which a piece is not attached: nothing is moved, and the piece is named."""
    memory, number = np.arange(300), MPI.LONG
    parts = first, last = memory[:100], memory[200:]
    win = MPI.Win.Create_dynamic(comm=comm)
    for part in parts:
        win.Attach(part)
    both = number.Create_hindexed([2, 2], [0, 8 * 200]).Commit()
    across = number.Create_vector(3, 2, 89).Commit()
    between = number.Create_hindexed([2, 2, 2], [0, 8 * 200, 8 * 150]).Commit()
    for target, base in enumerate(comm.allgather(MPI.Get_address(memory))):
        if comm.rank == 0:
            refuse_piece(win, target, (base + 8 * 98, 4, number), base + 8 * 100, 8 * 2)
            refuse_piece(win, target, (base + 8 * 99, 200, number), base + 8 * 100, 8 * 199)
            refuse_piece(win, target, (base + 8 * 10, 1, across), base + 8 * 100, 8)
            refuse_piece(win, target, (base, 1, between), base + 8 * 150, 8 * 2)
        for part, start in ((last, 200), (first, 0)):
            comm.Barrier()
            if comm.rank == target:
                win.Detach(part)
            comm.Barrier()
            if comm.rank == 0:
                refuse_piece(win, target, (base, 1, both), base + 8 * start, 8 * 2)
                assert read(win, target, (base + 8 * (200 - start), 2, number)) == [200 - start, 201 - start]
            comm.Barrier()
            if comm.rank == target:
                win.Attach(part)
            comm.Barrier()
            if comm.rank == 0:
                assert read(win, target, (base, 1, both)) == [0, 1, 200, 201]
    comm.Barrier()
    assert memory.tolist() == list(range(300))
    win.Free()


def read(win, target, there):
    got = np.zeros(there[1] * there[2].size // 8, "i8")
    win.Lock(target)
    win.Get(got, target, there)
    win.Unlock(target)
    return got.tolist()


def carry_out(win, access, *arguments):
    access(*arguments)
    win.Flush(arguments[-2])


def refuse_piece(win, target, there, address, nbytes):
    count = there[1] * there[2].size // 8
    data, got = np.full(count, -1), np.zeros(count, "i8")
    words = f"rank {target} has attached no memory at address {address:#x}, where {nbytes} bytes are accessed"
    win.Lock(target)
    for access, arguments in (
        (win.Put, (data,)),
        (win.Get, (got,)),
        (win.Accumulate, (data,)),
        (win.Get_accumulate, (data, got)),
    ):
        with pytest.raises(MPI.Exception, match=words) as caught:
            carry_out(win, access, *arguments, target, there)
        assert caught.value.Get_error_class() == MPI.ERR_RMA_RANGE
    win.Unlock(target)
    assert not got.any()
