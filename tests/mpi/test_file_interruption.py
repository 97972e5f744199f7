"""What a signal handler does, or raises, in the middle of a call on a file."""

from __future__ import annotations

import contextlib
import dis
import fcntl
import os
import random
import signal
import struct

import numpy as np
import pytest
from file_calls import error_of, path_of
from late_signals import Late, until_late

from ompy import MPI

READ_WRITE = MPI.MODE_RDWR | MPI.MODE_CREATE
READY = 7
SET_LOCK = 37  # F_OFD_SETLK: the lock is the open file's, not the process's

DATA = np.zeros(500, "i4")
FOUR = bytearray(4)

# Calls in which a rank waits for the others.
COLLECTIVE = {
    "Set_size": lambda file: file.Set_size(100),
    "Preallocate": lambda file: file.Preallocate(100),
    "Set_info": lambda file: file.Set_info(MPI.INFO_NULL),
    "Set_view": lambda file: file.Set_view(0, MPI.BYTE),
    "Set_atomicity": lambda file: file.Set_atomicity(False),
    "Sync": lambda file: file.Sync(),
    "Seek_shared": lambda file: file.Seek_shared(3),
    "Write_ordered": lambda file: file.Write_ordered(b"abcd"),
    "Read_ordered": lambda file: file.Read_ordered(FOUR),
    "Write_ordered_begin": lambda file: file.Write_ordered_begin(b"abcd"),
    "Write_at_all": lambda file: file.Write_at_all(0, DATA),
    "Read_at_all": lambda file: file.Read_at_all(0, DATA),
}


def opened(comm, path):
    """A file in which collective accesses are gathered."""
    file = MPI.File.Open(comm, path, READ_WRITE, MPI.Info.Create({"romio_cb_write": "enable", "romio_cb_read": "enable"}))
    file.Set_view(0, MPI.INT, MPI.INT.Create_hindexed([1], [4 * comm.rank]).Create_resized(0, 4 * comm.size).Commit())
    return file


def interrupted(comm, call):
    """On rank 1 a signal handler's exception ends the call, in which the others are only then."""
    if comm.rank != 1:
        comm.recv(source=1, tag=READY)
        return call()
    until_late(call, lambda: [comm.send(None, rank, READY) for rank in range(comm.size) if rank != 1])
    return None


@pytest.mark.ompy(2, 3)
@pytest.mark.parametrize("name", COLLECTIVE)
def test_a_collective_call_that_a_signal_handler_ends_is_made_by_all_ranks(comm, tmp_path, name):
    file = opened(comm, path_of(comm, tmp_path))
    interrupted(comm, lambda: COLLECTIVE[name](file))
    if name == "Write_ordered_begin" and comm.rank != 1:
        file.Write_ordered_end(b"abcd")
    # Nobody is a call behind.
    file.Set_view()
    for _ in range(2):
        file.Write_ordered(bytes([comm.rank]))
    file.Sync()
    comm.Barrier()
    got = bytearray(2 * comm.size)
    file.Read_at_all(0, got)
    assert got == bytes(range(comm.size)) * 2
    file.Close()


@pytest.mark.ompy(2, 3)
def test_a_file_that_one_rank_does_not_wait_to_see_opened_is_opened_by_none(comm, tmp_path):
    path = path_of(comm, tmp_path)
    error = interrupted(comm, lambda: error_of(MPI.File.Open, comm, path, READ_WRITE))
    assert comm.rank == 1 or (path in str(error) and "rank 1" in str(error))
    file = MPI.File.Open(comm, path, READ_WRITE)
    file.Write_ordered(b"x")
    file.Close()


@pytest.mark.ompy(2, 3)
def test_a_close_that_a_signal_handler_ends_has_closed_the_file(comm, tmp_path):
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE)
    interrupted(comm, file.Close)
    assert not file
    assert path not in [os.path.realpath(link.path) for link in os.scandir("/proc/self/fd")]


@contextlib.contextmanager
def somebody_else_s(path):
    """The file's bytes are locked, until what this gives is called."""
    with open(path, "r+b") as other:
        word = struct.Struct("hhxxxxqqixxxx")
        fcntl.fcntl(other, SET_LOCK, word.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        yield lambda: fcntl.fcntl(other, SET_LOCK, word.pack(fcntl.F_UNLCK, os.SEEK_SET, 0, 0, 0))


@pytest.mark.ompy(1)
@pytest.mark.parametrize("begin", [MPI.File.Iwrite_at, MPI.File.Iwrite_at_all])
def test_a_close_that_a_signal_handler_ends_while_an_access_is_under_way_has_ended_that(comm, tmp_path, begin):
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE)
    file.Set_atomicity(True)
    with somebody_else_s(path) as unlock:
        request = begin(file, 0, b"abc")
        until_late(file.Close, unlock)
    assert request.Test()
    assert not file
    assert path not in [os.path.realpath(link.path) for link in os.scandir("/proc/self/fd")]
    with open(path, "rb") as source:
        assert source.read() == b"abc"


@pytest.mark.ompy(2)
@pytest.mark.parametrize("name", COLLECTIVE)
def test_a_signal_handler_can_t_close_the_file_whose_call_it_has_interrupted(comm, tmp_path, name):
    file = opened(comm, path_of(comm, tmp_path))
    heard = []

    def close(*_):
        heard.append(error_of(file.Close))
        comm.send(None, 1, READY)

    if comm.rank == 0:
        signal.signal(signal.SIGALRM, close)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
    else:
        comm.recv(source=0, tag=READY)
    COLLECTIVE[name](file)
    if name == "Write_ordered_begin":
        file.Write_ordered_end(b"abcd")
    assert [error.Get_error_class() for error in heard] == [MPI.ERR_FILE] * (comm.rank == 0)
    assert not heard or "under way" in str(heard[0])
    file.Close()


@pytest.mark.ompy(2)
def test_a_signal_handler_can_t_use_a_file_that_is_being_closed(comm, tmp_path):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    heard = []

    def use(*_):
        for call in (file.Close, file.Get_size, lambda: file.Write_at(0, b"x"), lambda: file.Iread_at(0, bytearray(1))):
            heard.append(error_of(call).Get_error_class())
        comm.send(None, 1, READY)

    if comm.rank == 0:
        signal.signal(signal.SIGALRM, use)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
    else:
        comm.recv(source=0, tag=READY)
    file.Close()
    assert heard == [MPI.ERR_FILE] * (4 if comm.rank == 0 else 0)


@pytest.mark.ompy(3)
def test_interruptions_at_any_moment_leave_all_ranks_in_step(comm, tmp_path, ompy_rng):
    in_step(comm, tmp_path, ompy_rng)


@pytest.mark.ompy(2, mca={"sharedfp": "lockedfile", "fcoll_two_phase_exchange": "messages"})
def test_interruptions_at_any_moment_leave_all_ranks_in_step_with_a_shared_pointer_in_a_file(comm, tmp_path, ompy_rng):
    in_step(comm, tmp_path, ompy_rng)


def raise_within(_, frame):
    """The signal handler: raises where a call on the file has begun, else the others would wait for it."""
    begun = dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("CALL")
    if begun and frame.f_code is not in_step.__code__:
        raise Late


def in_step(comm, tmp_path, ompy_rng):
    dice, mine = random.Random(comm.bcast(ompy_rng.random())), random.Random(ompy_rng.random() + comm.rank)
    path = path_of(comm, tmp_path)
    file = opened(comm, path)
    signal.signal(signal.SIGALRM, raise_within)
    calls = {**COLLECTIVE, "Close": lambda file: file.Close()}
    del calls["Write_ordered_begin"]
    ended = 0
    for _ in range(300):
        name = dice.choice(sorted(calls))
        call, soon = calls[name], mine.expovariate(5000) + 1e-6
        try:
            signal.setitimer(signal.ITIMER_REAL, soon)
            call(file)
        except Late:
            ended += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        if not file:
            file = opened(comm, path)
        pointers = comm.allgather(file.Get_position_shared())
        assert len(set(pointers)) == 1, name
    print(f"{ended} calls were interrupted")
    file.Close()
