"""Windows over ordinary memory whose targets are inside MPI: they carry out short accesses themselves."""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import threading

import numpy as np
import pytest
from accessing import move_spread_elements, poll_until_told
from late_signals import Late, raise_late
from ordering import KINDS, PATIENT, POSTED, PULL, SLOTS, access_rank_1, counters, over_ordinary_memory, word
from test_fork import child
from test_window_random import check_memory_is_what_the_model_says

from ompy import MPI

# Bytes around what has room in a slot, what is fetched before it is claimed, and what has room beside the slot.
SHORT = (1, 8, 16, 17, 32, 33, 4095, 4096, 4097, 20000, 32767, 32768)


@pytest.mark.ompy(2, mca=PATIENT)
@pytest.mark.parametrize("what", KINDS)
def test_a_target_inside_mpi_carries_short_accesses_out(comm, what, ompy_seed):
    assert access_rank_1(comm, what, SHORT, ompy_seed) == len(SHORT)


def poll_now_and_then(comm):
    """Out of MPI for tens of microseconds at a time."""
    while not comm.Iprobe(tag=99):
        sum(range(1000))
    return comm.recv(tag=99)


def move_spread_elements_counted(comm, seed, poll=poll_until_told):
    """Orders that rank 1 has carried out for rank 0."""
    before = counters()["ordered"]
    return move_spread_elements(comm, seed, poll, lambda: counters()["ordered"] - before)


@pytest.mark.ompy(2, mca=PATIENT)
def test_a_target_inside_mpi_moves_elements_that_do_not_lie_together(comm, ompy_seed):
    """An order each way; four of the larger ones for what is longer than a slot's room."""
    assert 11 * 2 * 8 <= move_spread_elements_counted(comm, ompy_seed) <= 11 * 2 * 8 * 4


@pytest.mark.ompy(2, mca={"osc": "sm", "osc_sm_patience": "0"})
def test_the_kernel_moves_elements_that_do_not_lie_together(comm, ompy_seed):
    assert move_spread_elements_counted(comm, ompy_seed) == 0


@pytest.mark.ompy(2, mca={"osc": "sm", "osc_sm_patience": "2"})
def test_what_a_target_does_not_move_in_time_the_kernel_does(comm, ompy_seed):
    for _ in range(10):
        move_spread_elements(comm, ompy_seed, poll_now_and_then)


@pytest.mark.ompy(2, mca=PATIENT)
@pytest.mark.parametrize("kind", ["i1", "i4", "i8"])
def test_a_target_inside_mpi_swaps(comm, kind):
    """Elements that are equal, and others; of one, four and eight bytes."""
    memory = np.zeros(2, kind)
    before = counters()
    win = MPI.Win.Create(memory, memory.itemsize, comm=comm)
    if comm.rank == 0:
        old = np.zeros(1, kind)
        win.Lock(1)
        for new, compare, there in ((5, 0, 0), (6, 0, 5), (7, 5, 5)):
            win.Compare_and_swap(np.full(1, new, kind), np.full(1, compare, kind), old, 1, 1)
            assert old[0] == there
        win.Unlock(1)
        assert counters()["ordered"] == before["ordered"] + 3
        comm.send(None, 1, 99)
    else:
        poll_until_told(comm)
        assert memory.tolist() == [0, 7]
    win.Free()


@pytest.mark.ompy(2, mca=PATIENT)
@pytest.mark.parametrize("kind", ["u1", "i2", "i4", "i8", "f4", "f8", "g", "c8", "c16"])
def test_every_operation_is_what_it_is_by_the_kernel(comm, kind):
    """On aligned elements, and on such as lie across alignments, which no order serves; few and many."""
    bits = ["BAND", "BOR", "BXOR", "LAND", "LOR", "LXOR"] if kind[0] in "ui" else []
    order = ["MAX", "MIN"] if kind[0] != "c" else []
    element = np.dtype(kind)
    win, _ = over_ordinary_memory(comm, 7 * 3000 * element.itemsize + 1)
    if comm.rank == 0:
        win.Lock(1)
        for name in ["SUM", "PROD", "REPLACE", *order, *bits]:
            for start, times in itertools.product((0, 1), (1, 3000)):
                here = np.tile(np.array([3, 0, 6, 1, 2, 5, 7], kind), times)
                there = np.tile(np.array([5, 4, 0, 1, 3, 2, 6], kind), times)
                expected, result = there.copy(), np.zeros_like(here)
                getattr(MPI, name).Reduce_local(here, expected)
                win.Put(there.view("u1"), 1, start)
                win.Accumulate(here, 1, start, getattr(MPI, name))
                win.Get(result.view("u1"), 1, start)
                win.Flush(1)
                assert (result == expected).all(), (name, start, times)
        win.Unlock(1)
        comm.send(None, 1, 99)
    else:
        poll_until_told(comm)
    win.Free()


@pytest.mark.ompy(2, 3, mca=PATIENT)
def test_memory_is_what_the_model_says_when_targets_carry_out(comm):
    check_memory_is_what_the_model_says(comm)


@pytest.mark.ompy(2, 3, mca=PATIENT)
def test_ranks_with_orders_for_one_another_all_get_on(comm):
    """Nobody polls but who waits for an order's end."""
    win, memory = over_ordinary_memory(comm, 8 * comm.size)
    after = (comm.rank + 1) % comm.size
    comm.Barrier()
    win.Lock_all()
    for turn in range(100):
        win.Put(np.full(1, turn), after, 8 * comm.rank)
        win.Flush(after)
    win.Unlock_all()
    comm.Barrier()
    assert memory.view("i8")[comm.rank - 1] == 99
    assert counters()["ordered"]
    win.Free()


@pytest.mark.ompy(2, 3, mca=PATIENT)
def test_accumulates_that_targets_carry_out_are_atomic(comm):
    """Beside those of the kernel's, which the long ones are, and of the owner's own."""
    memory = np.zeros(1000, "i8")
    win = MPI.Win.Create(memory, 8, comm=comm)
    old = np.zeros(1000, "i8")
    win.Lock_all()
    for turn in range(200):
        for target in range(comm.size):
            count = (1, 500, 1000)[turn % 3]
            win.Get_accumulate(np.ones(count, "i8"), old[:count], target)
    win.Unlock_all()
    comm.Barrier()
    assert memory[0] == 200 * comm.size
    assert memory[999] == 66 * comm.size
    win.Free()


@pytest.mark.ompy(2, mca={"osc": "sm", "osc_sm_patience": "1000"})
def test_a_target_that_sleeps_in_mpi_is_called(comm):
    win, memory = over_ordinary_memory(comm, 8)
    if comm.rank == 0:
        win.Lock(1)
        while not counters()["ordered"]:
            win.Put(np.ones(1), 1)
        win.Unlock(1)
        comm.send(None, 1)
    else:
        comm.recv(source=0)
        assert memory.view("f8")[0] == 1
    win.Free()


@pytest.mark.ompy(2, mca={"osc": "sm", "osc_sm_patience": "0"})
def test_without_patience_there_are_no_orders(comm):
    win, memory = over_ordinary_memory(comm, 8)
    if comm.rank == 0:
        win.Lock(1)
        for _ in range(100):
            win.Accumulate(np.ones(1), 1)
        win.Unlock(1)
        comm.send(None, 1, 99)
    else:
        poll_until_told(comm)
        assert memory.view("f8")[0] == 100
    assert counters() == {"carried out": 0, "ordered": 0}
    win.Free()


@pytest.mark.ompy(2, mca=PATIENT)
def test_exceptions_of_the_targets_signal_handlers_harm_no_order(comm):
    win, memory = over_ordinary_memory(comm, 8)
    comm.Barrier()
    if comm.rank == 0:
        win.Lock_all()
        for _ in range(20000):
            win.Accumulate(np.ones(1, "i8"), 1)
        win.Unlock_all()
        comm.send(None, 1)
    else:
        told = []

        def raise_until_told(*_):
            if not told:
                raise Late

        signal.signal(signal.SIGALRM, raise_until_told)
        while not told:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.001)
                comm.Probe(0)
                told.append(True)
            except Late:
                pass
        comm.recv(source=0)
        assert memory.view("i8")[0] == 20000
    win.Free()


@pytest.mark.ompy(2, mca=PATIENT)
def test_exceptions_of_the_origins_signal_handlers_leave_whole_accesses(comm):
    """Each number is handed out once, though some calls never return it."""
    win, memory = over_ordinary_memory(comm, 8)
    if comm.rank == 0:
        last, old, late = -1, np.zeros(1, "i8"), 0
        one = np.ones(1, "i8")
        signal.signal(signal.SIGALRM, raise_late)
        win.Lock_all()
        while late < 50:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.001)
                while True:
                    win.Fetch_and_op(one, old, 1)
                    assert old[0] > last
                    last = int(old[0])
            except Late:
                late += 1
        win.Unlock_all()
        win.Lock(1)
        win.Fetch_and_op(one, old, 1)
        win.Unlock(1)
        comm.send(int(old[0]), 1, 99)
    else:
        assert poll_until_told(comm) + 1 == memory.view("i8")[0]
    win.Free()


@pytest.mark.ompy(2, mca=PATIENT)
def test_threads_of_one_origin_take_turns(comm):
    win, memory = over_ordinary_memory(comm, 16)
    if comm.rank == 0:
        win.Lock_all()

        def add():
            for _ in range(2000):
                win.Accumulate(np.ones(1, "i8"), 1)
                win.Put(np.full(1, 7, "i8"), 1, 8)

        threads = [threading.Thread(target=add) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        win.Unlock_all()
        comm.send(None, 1, 99)
    else:
        poll_until_told(comm)
        assert memory.view("i8").tolist() == [6000, 7]
    win.Free()


@pytest.mark.ompy(2, mca={**PATIENT, "mpi_async_progress": 1})
def test_orders_beside_a_progress_thread(comm):
    win, memory = over_ordinary_memory(comm, 8)
    if comm.rank == 0:
        win.Lock_all()
        for _ in range(5000):
            win.Accumulate(np.ones(1, "i8"), 1)
        win.Unlock_all()
        comm.send(None, 1, 99)
    else:
        poll_until_told(comm)
        assert memory.view("i8")[0] == 5000
    win.Free()


@pytest.mark.ompy(2, mca=PATIENT)
def test_a_child_of_the_target_carries_nothing_out(comm):
    win, memory = over_ordinary_memory(comm, 8)
    if comm.rank == 0:
        win.Lock(1)
        win.Put(np.ones(1), 1)
        comm.send(None, 1, 99)
        win.Put(np.full(1, 2.0), 1)
        comm.send(None, 1, 99)
        win.Unlock(1)
    else:
        poll_until_told(comm)
        assert child(lambda: None) == 0
        poll_until_told(comm)
        assert memory.view("f8")[0] == 2
    win.Free()


# -- the words themselves


@pytest.mark.ompy(2, mca=PATIENT)
def test_where_all_slots_are_taken_the_kernel_copies(comm):
    win, memory = over_ordinary_memory(comm, 8)
    if comm.rank == 1:
        for slot in range(SLOTS):
            word(slot, 4).value = os.getppid()
    comm.Barrier()
    if comm.rank == 0:
        win.Lock(1)
        for _ in range(100):
            win.Accumulate(np.ones(1, "i8"), 1)
        win.Unlock(1)
        assert counters()["ordered"] == 0
    comm.Barrier()
    assert comm.rank == 0 or memory.view("i8")[0] == 100
    win.Free()


@pytest.mark.ompy(2, mca=PATIENT)
def test_the_slot_of_a_process_that_has_gone_is_had_again(comm):
    win, memory = over_ordinary_memory(comm, 8)
    if comm.rank == 1:
        gone = os.fork()
        if gone == 0:
            os._exit(0)
        os.waitpid(gone, 0)
        for slot in range(SLOTS):
            word(slot, 4).value = gone
            word(slot, 0).value = POSTED
    comm.Barrier()
    if comm.rank == 0:
        win.Lock(1)
        win.Put(np.ones(1, "i8"), 1)
        win.Unlock(1)
        assert counters()["ordered"] == 1
        comm.send(None, 1, 99)
    else:
        poll_until_told(comm)
        assert memory.view("i8")[0] == 1
    win.Free()


def leave_an_order(memory, kind=0):
    """As a process does that is killed over it."""
    word(0, 8, ctypes.c_uint64).value = memory.ctypes.data
    word(0, 16).value = 8
    word(0, 20, ctypes.c_uint16).value = kind
    word(0, 32, ctypes.c_uint64).value = 77
    used = word(0, -64)
    used.value = max(used.value, 1)
    word(0, 0).value = POSTED


@pytest.mark.ompy(2, mca=PATIENT)
def test_an_order_that_was_left_behind_is_not_carried_out_once_its_memory_is_detached(comm):
    memory = np.zeros(1, "i8")
    win = MPI.Win.Create_dynamic(comm=comm)
    win.Attach(memory)
    leave_an_order(memory)
    win.Detach(memory)
    comm.Barrier()
    comm.Iprobe()
    assert memory[0] == 0
    win.Free()


@pytest.mark.ompy(2, mca=PATIENT)
def test_no_order_is_left_when_a_window_has_been_freed(comm):
    win, memory = over_ordinary_memory(comm, 8)
    leave_an_order(memory)
    win.Free()
    assert word(0, 0).value != POSTED


@pytest.mark.ompy(2, mca=PATIENT)
def test_what_was_long_in_the_mailbox_touches_no_other_process(comm):
    """The number of the one that left it may be another's by then."""
    win, memory = over_ordinary_memory(comm, 8)
    source = np.full(1, 5, "i8")
    word(0, 4).value = os.getpid()
    leave_an_order(memory, kind=PULL)
    word(0, 32, ctypes.c_uint64).value = source.ctypes.data
    while word(0, 0).value == POSTED:
        comm.Iprobe()
    assert memory.view("i8")[0] == 0
    word(0, 4).value = 0
    comm.Barrier()
    win.Free()
