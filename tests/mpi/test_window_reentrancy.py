"""Accesses and frees of a window that come from within another call on it: from signal handlers, and from what reads arguments.
And what the program still has of a window that is freed.
"""

import os
import signal

import numpy as np
import pytest
from accessing import poll_until_told
from late_signals import pids, told
from ordering import PATIENT, POSTED, SLOTS, over_ordinary_memory, word

from ompy import MPI


@pytest.mark.ompy(3, mca=PATIENT)
@pytest.mark.parametrize("handler", ["put", "get"])
def test_a_handlers_access_amid_an_accumulate_that_waits_for_its_turn_is_kept_apart(comm, handler):
    """Rank 2's accumulate has the turn until rank 1 looks, so that rank 0's waits; its handler then makes an access."""
    win, memory = over_ordinary_memory(comm, 64)
    memory[16:24] = 5
    shared = MPI.Win.Allocate_shared(8 if comm.rank == 0 else 0, comm=comm)
    # What ranks that are out of MPI tell each other.
    flags = np.frombuffer(shared.Shared_query(0)[0], "u1")
    one, given, found = np.ones(8, "u1"), np.full(8, 9, "u1"), np.zeros(8, "u1")
    win.Lock_all()
    comm.Barrier()
    if comm.rank == 1:
        while not any(word(slot, 0).value == POSTED for slot in range(SLOTS)):
            pass
        flags[0] = 1
        while not flags[1]:
            pass
        poll_until_told(comm)
        assert (memory[:8] == 2).all()
        assert (memory[8:16] == (9 if handler == "put" else 0)).all()
    elif comm.rank == 2:
        win.Accumulate(one, 1, 0)
        win.Flush(1)
        comm.send(None, 0, 98)
    else:

        def interrupt(*_):
            win.Put(given, 1, 8) if handler == "put" else win.Get(found, 1, 16)
            flags[1] = 1

        signal.signal(signal.SIGALRM, interrupt)
        while not flags[0]:
            pass
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        win.Accumulate(one, 1, 0)
        win.Flush(1)
        assert handler == "put" or (found == 5).all()
        comm.recv(source=2, tag=98)
        comm.send(None, 1, 99)
    win.Unlock_all()
    comm.Barrier()
    win.Free()
    shared.Free()


class Freeing:
    """A zero that frees the window when it is looked at."""

    def __init__(self, win, lock):
        self.win, self.lock = win, lock

    def free(self):
        if self.win != MPI.WIN_NULL:
            if self.lock:
                self.win.Unlock(0)
            self.win.Free()
        return 0

    def __index__(self):
        return self.free()

    __int__ = __index__

    def __le__(self, other):
        self.free()
        return True

    __ge__ = __le__


ACCESSES = {
    "Put": lambda win, late: win.Put(np.zeros(1), 0, (late,)),
    "Get": lambda win, late: win.Get(np.zeros(1), 0, (late,)),
    "Rput": lambda win, late: win.Rput(np.zeros(1), 0, (late,)),
    "Accumulate": lambda win, late: win.Accumulate(np.zeros(1), 0, (late,)),
    "Get_accumulate": lambda win, late: win.Get_accumulate(np.zeros(1), np.zeros(1), 0, (late,)),
}
SYNCHRONISATIONS = {
    "Fence": lambda win, late: win.Fence(late),
    "Lock_all": lambda win, late: win.Lock_all(late),
    "Lock": lambda win, late: win.Lock(0, MPI.LOCK_SHARED, late),
    "Start": lambda win, late: win.Start(MPI.COMM_SELF.group, late),
    "Post": lambda win, late: win.Post(MPI.COMM_SELF.group, late),
}


@pytest.mark.ompy(1)
@pytest.mark.parametrize("osc", ["sm", "pt2pt"])
@pytest.mark.parametrize("call", ACCESSES)
def test_a_window_that_its_own_arguments_free_is_an_error(call, osc):
    win = MPI.Win.Allocate(64, 8, MPI.Info.Create({"osc": osc}), MPI.COMM_SELF)
    win.Lock(0)
    with pytest.raises(MPI.Exception, match="WIN_NULL"):
        ACCESSES[call](win, Freeing(win, True))


@pytest.mark.ompy(1)
@pytest.mark.parametrize("call", SYNCHRONISATIONS)
def test_a_window_that_its_assertion_frees_is_an_error(call):
    win = MPI.Win.Allocate(64, 8, comm=MPI.COMM_SELF)
    with pytest.raises(MPI.Exception, match="WIN_NULL"):
        SYNCHRONISATIONS[call](win, Freeing(win, False))


@pytest.mark.ompy(2)
@pytest.mark.parametrize("flavor", ["allocate", "shared", "create"])
@pytest.mark.parametrize("by", ["window", "tomemory"])
def test_memory_stays_as_long_as_the_program_has_a_view_of_it(comm, flavor, by):
    def make(value):
        if flavor == "create":
            return MPI.Win.Create(np.full(4096, value, "u1"), comm=comm)
        win = (MPI.Win.Allocate if flavor == "allocate" else MPI.Win.Allocate_shared)(4096, comm=comm)
        np.frombuffer(win, "u1")[:] = value
        return win

    win = make(7)
    view = np.frombuffer(win if by == "window" else win.tomemory(), "u1")
    win.Free()
    others = [make(9) for _ in range(3)]
    assert (view == 7).all()
    view[:] = 5
    comm.Barrier()
    assert all((np.frombuffer(other, "u1") == 9).all() for other in others)
    for other in others:
        other.Free()


@pytest.mark.ompy(2, mca={"osc": "pt2pt"})
def test_complete_is_made_with_the_targets_whatever_a_handler_raises(comm):
    from late_signals import until_late

    processes = pids(comm)
    win = MPI.Win.Create(np.full(1000, 7.0), 8, comm=comm)
    group = comm.group.Incl([1 - comm.rank])
    if comm.rank == 1:
        win.Post(group)
        comm.Barrier()
        told()
        win.Wait()
    else:
        found = np.zeros(1000)
        win.Start(group)
        comm.Barrier()
        win.Get(found, 1)
        until_late(win.Complete, before=lambda: os.kill(processes[1], signal.SIGUSR1))
        assert (found == 7).all()
    comm.Barrier()
    win.Free()


@pytest.mark.ompy(2)
def test_a_finaliser_of_what_was_put_may_accumulate(comm):
    win, memory = over_ordinary_memory(comm, 16)

    class Accumulates(np.ndarray):
        armed = False

        def __del__(self):
            if self.armed:
                self.armed = False
                win.Accumulate(np.ones(1, "u1"), 1, 1)

    if comm.rank == 0:
        win.Lock(1)
        for _ in range(20):
            data = np.ones(1, "u1").view(Accumulates)
            data.armed = True
            win.Put(data, 1, 0)
            del data
            win.Accumulate(np.ones(1, "u1"), 1, 2)
        win.Unlock(1)
        comm.send(None, 1, 99)
    else:
        poll_until_told(comm)
        assert memory[1] == memory[2] == 20
    comm.Barrier()
    win.Free()


@pytest.mark.ompy(2)
def test_a_window_that_its_own_attributes_free_is_an_error_and_freed(comm):
    win = MPI.Win.Allocate(8, comm=comm)
    keyval = MPI.Win.Create_keyval(delete_fn=lambda win, keyval, value: value.Free())
    win.Set_attr(keyval, win)
    with pytest.raises(MPI.Exception, match="WIN_NULL") as caught:
        win.Free()
    assert caught.value.Get_error_class() == MPI.ERR_WIN
    assert win == MPI.WIN_NULL
    MPI.Win.Free_keyval(keyval)
