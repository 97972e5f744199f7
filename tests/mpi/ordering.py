"""Accesses to ordinary memory whose targets carry them out, and the words in which those are ordered."""

from __future__ import annotations

import ctypes
import random

import numpy as np
from accessing import poll_until_told

from ompy import MPI

# Microseconds: an order waits until its target polls, so that nothing depends on who is quicker.
PATIENT = {"osc": "sm", "osc_sm_patience": "1e7"}
KINDS = ["put", "get", "accumulate", "fetch", "read", "replace"]
SLOT_BYTES, SLOTS = 64, 16
POSTED, PULL, PUSH, ABSORB = 1, 7, 8, 9


def counters():
    from ompy_osc_sm.mailbox import counters

    return counters()


def over_ordinary_memory(comm, nbytes):
    memory = np.zeros(nbytes, "u1")
    return MPI.Win.Create(memory, 1, comm=comm), memory


def access(win, what, nbytes, model, dice):
    """One access to the first bytes of rank 1; the model is what these hold."""
    data = np.frombuffer(dice.randbytes(nbytes), "u1")
    old, expected = np.zeros(nbytes, "u1"), model[:nbytes].copy()
    if what == "put":
        win.Put(data, 1)
        model[:nbytes] = data
    elif what == "get":
        win.Get(old, 1)
    elif what == "accumulate":
        win.Accumulate(data, 1)
        model[:nbytes] += data
    elif what == "fetch":
        win.Get_accumulate(data, old, 1, op=MPI.BXOR)
        model[:nbytes] ^= data
    elif what == "read":
        win.Get_accumulate(data, old, 1, op=MPI.NO_OP)
    else:
        win.Get_accumulate(data, old, 1, op=MPI.REPLACE)
        model[:nbytes] = data
    win.Flush(1)
    assert what in ("put", "accumulate") or (old == expected).all()


def access_rank_1(comm, what, lengths, seed):
    """How many accesses of rank 0's rank 1 had a part in."""
    # Who is slow to leave the making of the window may have carried orders out by then.
    before = counters()
    win, memory = over_ordinary_memory(comm, max(lengths))
    if comm.rank == 0:
        dice, model = random.Random(seed), np.zeros(max(lengths), "u1")
        win.Lock_all()
        for nbytes in lengths:
            access(win, what, nbytes, model, dice)
        win.Unlock_all()
        parts = counters()["ordered"] - before["ordered"]
        comm.send(parts, 1, 99)
        comm.send(model, 1)
    else:
        parts = poll_until_told(comm)
        assert counters()["carried out"] - before["carried out"] == parts
        assert (memory == comm.recv(source=0)).all(), f"seed {seed}"
    win.Free()
    return parts


def word(slot, offset, kind=ctypes.c_uint32):
    """Of a slot of this process's own mailbox."""
    from ompy_osc_sm.mailbox import address

    return kind.from_address(address() + 64 + slot * SLOT_BYTES + offset)
