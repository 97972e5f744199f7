"""What tests of several one-sided components do: accesses from neighbour to neighbour, and to rank 0 from all."""

from __future__ import annotations

import random

import numpy as np

from ompy import MPI
from ompy.mca import selection


def made(flavor, comm, count):
    if flavor == "create":
        memory = np.zeros(count)
        return MPI.Win.Create(memory, 8, comm=comm), memory
    win = (MPI.Win.Allocate if flavor == "allocate" else MPI.Win.Allocate_shared)(8 * count, 8, comm=comm)
    return win, np.frombuffer(win.tomemory())


def accesses(comm, component):
    """Every kind of access and epoch once, in windows of three flavors that the component serves."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for flavor in ("allocate", "create", "shared"):
        win, memory = made(flavor, comm, 20000)
        assert next(it for it in selection.verdicts("osc") if it.chosen).component == component
        spread = MPI.DOUBLE.Create_vector(5, 1, 2).Commit()
        win.Fence()
        win.Put(np.full(10000, comm.rank + 1.0), right, 5)
        win.Fence()
        assert (memory[5:10005] == left + 1).all()
        got = np.zeros(10000)
        win.Get(got, right, 5)
        win.Put(np.arange(5.0), right, (15000, 1, spread))
        win.Fence()
        assert (got == comm.rank + 1).all()
        assert memory[15000:15010].tolist() == [0, 0, 1, 0, 2, 0, 3, 0, 4, 0]
        win.Lock_all()
        for _ in range(20):
            win.Accumulate(np.ones(10), 0)
            win.Accumulate(np.ones(5), 0, (0, 1, spread))
        win.Unlock_all()
        comm.Barrier()
        if comm.rank == 0:
            assert memory[:5].tolist() == [40.0 * comm.size, 20.0 * comm.size] * 2 + [40.0 * comm.size]
        one = np.zeros(1)
        for _ in range(10):
            win.Lock(0)
            win.Get(one, 0, 19000)
            win.Flush(0)
            one += 1
            win.Put(one, 0, 19000)
            win.Unlock(0)
        comm.Barrier()
        if comm.rank == 0:
            assert memory[19000] == 10 * comm.size
        others = comm.Get_group().Excl([comm.rank])
        win.Post(others)
        win.Start(others)
        for rank in range(comm.size):
            if rank != comm.rank:
                win.Put(np.full(1, 7.0), rank, 19100 + comm.rank)
        win.Complete()
        win.Wait()
        assert memory[19100 : 19100 + comm.size].sum() == 7 * (comm.size - 1)
        win.Free()
        spread.Free()


def pairs_of(value):
    return np.dtype([("value", value), ("index", "i4")], align=True)


def accumulate_pairs(comm):
    """Pairs whose halves leave gaps, by both operations, fetched and not; what pads the last one is not the window's."""
    count, rest = 7, 3
    target, origin = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for name, value in (("DOUBLE_INT", "f8"), ("LONG_INT", "i8"), ("SHORT_INT", "i2"), ("LONG_DOUBLE_INT", "g")):
        datatype, pair = getattr(MPI, name), pairs_of(value)
        padding = datatype.extent - datatype.Get_true_extent()[1]
        memory = np.full((count + rest) * pair.itemsize, 0x55, "u1")
        win = MPI.Win.Create(memory[: count * pair.itemsize - padding], comm=comm)
        held = memory[: count * pair.itemsize].view(pair)
        held["value"], held["index"] = np.arange(count), 100
        offered, old = np.zeros(count, pair), np.zeros(count, pair)
        offered["value"], offered["index"] = np.arange(count)[::-1], comm.rank
        comm.Barrier()
        win.Lock(target)
        win.Get_accumulate([offered, count, datatype], [old, count, datatype], target, op=MPI.MAXLOC)
        offered["value"] = count // 2
        win.Accumulate([offered, count, datatype], target, op=MPI.MINLOC)
        win.Unlock(target)
        comm.Barrier()
        assert old["value"].tolist() == list(range(count)), name
        assert old["index"].tolist() == [100] * count, name
        # The larger one of the values there and offered, and then none above the middle.
        assert held["value"].tolist() == [count // 2] * count, name
        assert held["index"].tolist() == [origin] * count, name
        assert (memory[count * pair.itemsize - padding :] == 0x55).all(), name
        win.Free()


def poll_until_told(comm):
    """In MPI again and again, and never asleep there."""
    while not comm.Iprobe(tag=99):
        pass
    return comm.recv(tag=99)


def spread(dice):
    """Datatypes of numbers that do not lie together, and how many of each: more blocks than the kernel takes at once, more
    bytes than a slot has room for or are read at once, blocks longer than that and far from each other."""
    number = MPI.INT
    gaps = np.cumsum([dice.randrange(1, 4) for _ in range(3000)])
    lengths = [dice.randrange(1, 5) for _ in range(500)]
    starts = np.cumsum([0, *(length + dice.randrange(1, 9) for length in lengths[:-1])])
    return [
        (number.Create_vector(5, 1, 2), 1),
        (number.Create_vector(20000, 3, 4), 1),
        (number.Create_indexed_block(1, gaps), 1),
        (number.Create_indexed(lengths, starts), 1),
        (number.Create_vector(3, 2, 5).Create_resized(0, 4 * 17), 400),
        (number.Create_vector(50, 2, -3).Create_hindexed([1], [4 * 300]), 1),
        (number.Create_subarray([30, 40, 50], [7, 20, 9], [3, 11, 40]), 1),
        (number.Create_vector(250, 1, 390), 1),
        (number.Create_vector(3, 10_000, 33_000), 1),
        (number.Create_indexed([1, 9000, 1, 17000, 3], [0, 2, 9010, 20000, 50000]), 1),
        (number.Create_indexed_block(1, [*range(0, 6000, 2), *range(90_000, 30_000, -400), *range(7000, 17_000, 3)]), 1),
    ]


def move_spread_elements(comm, seed, poll=poll_until_told, told=lambda: None):
    """Rank 0's accesses to elements of rank 1's memory that do not lie together; what `told` says of rank 0 after them."""
    memory = np.zeros(100_000, "i4")
    win = MPI.Win.Create(memory, 1, comm=comm)
    if comm.rank == 0:
        dice, model = random.Random(seed), np.zeros(100_000, "i4")
        win.Lock_all()
        for datatype, count in spread(dice):
            datatype.Commit()
            places = np.empty(count * datatype.size // 4, "i4")
            MPI.COMM_SELF.Sendrecv([np.arange(100_000, dtype="i4"), count, datatype], 0, 0, places, 0, 0)
            there = (0, count, datatype)
            for data in (np.frombuffer(dice.randbytes(4 * len(places)), "i4") >> 2 for _ in range(2)):
                win.Put(data, 1, there)
                model[places] = data
                got, old = np.zeros_like(data), np.zeros_like(data)
                win.Get(got, 1, there)
                win.Flush(1)
                assert (got == model[places]).all()
                win.Accumulate(data, 1, there)
                win.Get_accumulate(data, old, 1, there, op=MPI.MAX)
                win.Flush(1)
                assert (old == 2 * data).all()
                model[places] = np.maximum(2 * data, data)
                out = np.zeros(100_000, "i4")
                out[places] = data[::-1]
                win.Put([out, count, datatype], 1, there)
                back = np.zeros(100_000, "i4")
                win.Get([back, count, datatype], 1, there)
                win.Flush(1)
                assert (back == out).all()
                model[places] = data[::-1]
        win.Unlock_all()
        answer = told()
        comm.send(answer, 1, 99)
        comm.send(model, 1)
    else:
        answer = poll(comm)
        assert (memory == comm.recv(source=0)).all(), f"seed {seed}"
    win.Free()
    return answer
