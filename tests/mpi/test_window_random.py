"""Random accesses of many sizes against a model of what the memory holds."""

import random

import numpy as np
import pytest

from ompy import MPI

SEED = 4242
ELEMENTS = 70000
# Around the edges of what travels with an order, and far beyond.
LENGTHS = (1, 7, 511, 512, 513, 4000, 60000)


def check_memory_is_what_the_model_says(comm):
    """Each rank has an area of its own at every target, so its own accesses alone decide what is there."""
    dice = random.Random(SEED + comm.rank)
    memory = np.zeros(ELEMENTS * comm.size, "i8")
    win = MPI.Win.Create(memory, 8, comm=comm)
    model = np.zeros((comm.size, ELEMENTS), "i8")
    for _ in range(3):
        win.Lock_all()
        for _ in range(30):
            target, count = dice.randrange(comm.size), dice.choice(LENGTHS)
            start = dice.randrange(ELEMENTS - count)
            where = comm.rank * ELEMENTS + start
            expected = model[target, start : start + count]
            data, got = np.arange(count) + dice.randrange(1000), np.empty(count, "i8")
            kind = dice.choice(["replace", "sum", "maximum", "get"])
            if kind == "replace":
                win.Accumulate(data, target, where, MPI.REPLACE)
                expected[:] = data
            elif kind == "sum":
                win.Accumulate(data, target, where)
                expected += data
            elif kind == "maximum":
                win.Rget_accumulate(data, got, target, where, MPI.MAX).Wait()
                assert (got == expected).all(), f"seed {SEED}, {count} elements at {start} of rank {target}"
                np.maximum(expected, data, out=expected)
            else:
                win.Flush(target)
                win.Get(got, target, where)
                win.Flush_local(target)
                assert (got == expected).all(), f"seed {SEED}, {count} elements at {start} of rank {target}"
        win.Unlock_all()
        comm.Barrier()
    for rank, areas in enumerate(comm.allgather(model)):
        assert (memory[rank * ELEMENTS : (rank + 1) * ELEMENTS] == areas[comm.rank]).all(), f"seed {SEED}, from rank {rank}"
    win.Free()


@pytest.mark.ompy(2, 3)
def test_memory_is_what_the_model_says(comm):
    check_memory_is_what_the_model_says(comm)
