"""What several tests do: memory comes and goes, and its neighbour sees what there is."""

from __future__ import annotations

import random

import numpy as np
import pytest

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
        for _ in range(20):
            at, count = dice.randrange(39000), dice.randrange(1, 100)
            got = np.zeros(count)
            if any(start <= at and at + count <= start + length for start, length in theirs):
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
