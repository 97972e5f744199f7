"""`mpi_async_progress`: what peers do with this rank comes to its end though it stays outside of MPI until then."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import numpy
import pytest

ON = {"mpi_async_progress": "1"}
SHARED_MEMORY = ON | {"btl": "sm,self", "osc": "sm,pt2pt"}
MESSAGES = ON | {"btl": "sm,self", "osc": "pt2pt"}
TCP = ON | {"btl": "zmq,self"}
PORTALS = ON | {"pml": "cm", "mtl": "portals", "osc": "pt2pt"}
ABSENT = 1


@contextmanager
def absent_until_told(comm, folder):
    """Rank 1 sits in a system call until every other one has come out of the block."""
    path = folder / "told"
    if comm.rank == ABSENT:
        path.unlink(missing_ok=True)
        os.mkfifo(path)
    comm.Barrier()
    yield
    if comm.rank == ABSENT:
        # For writing too: it stays open between two of the others.
        with open(path, "rb+", buffering=0) as pipe:
            for _ in range(comm.size - 1):
                pipe.read(1)
    else:
        path.write_bytes(b".")
    comm.Barrier()


def window_of(comm, flavor):
    """(window, displacement of its first word, one word in displacements)."""
    from ompy import MPI

    if flavor == "allocated":
        return MPI.Win.Allocate(512, 8, comm=comm), 0, 1
    memory = numpy.zeros(64, "i8")
    if flavor == "created":
        return MPI.Win.Create(memory, 8, comm=comm), 0, 1
    window = MPI.Win.Create_dynamic(comm=comm)
    window.Attach(memory)
    return window, comm.bcast(MPI.Get_address(memory), ABSENT), 8


def accesses_end(comm, folder):
    for flavor in ("allocated", "created", "dynamic"):
        window, start, word = window_of(comm, flavor)
        window.Lock_all()
        with absent_until_told(comm, folder):
            if comm.rank == 0:
                one, seen = numpy.ones(1, "i8"), numpy.zeros(4, "i8")
                window.Put(numpy.arange(4), ABSENT, start)
                window.Flush(ABSENT)
                window.Accumulate(one, ABSENT, start + 3 * word)
                window.Fetch_and_op(one, seen[:1], ABSENT, start + 3 * word)
                window.Flush(ABSENT)
                window.Compare_and_swap(numpy.array([9]), numpy.array([5]), seen[1:2], ABSENT, start + 3 * word)
                window.Flush(ABSENT)
                assert seen.tolist() == [4, 5, 0, 0]
                window.Get(seen, ABSENT, start)
                window.Flush(ABSENT)
                assert seen.tolist() == [0, 1, 2, 9]
        window.Unlock_all()
        window.Free()


def long_messages_arrive(comm, folder):
    data, got = numpy.arange(1 << 18, dtype="i"), numpy.zeros(1 << 18, "i")
    for _ in range(3):
        got[:] = 0
        request = comm.Irecv(got, 0, 7) if comm.rank == ABSENT else None
        with absent_until_told(comm, folder):
            if comm.rank == 0:
                comm.Send(data, ABSENT, 7)
        if request is not None:
            request.Wait()
            assert (got == data).all()


def collectives_end(comm, folder):
    for count in (1, 100_000):
        mine, total = numpy.full(count, comm.rank), numpy.zeros(count, int)
        comm.Barrier()
        request = comm.Iallreduce(mine, total)
        with absent_until_told(comm, folder):
            if comm.rank != ABSENT:
                request.Wait()
                assert (total == sum(range(comm.size))).all()
        request.Wait()


def everything(comm, folder):
    accesses_end(comm, folder)
    long_messages_arrive(comm, folder)
    collectives_end(comm, folder)


@pytest.mark.ompy(2, 3, mca=SHARED_MEMORY)
def test_what_goes_through_shared_memory_ends(comm, tmp_path):
    everything(comm, tmp_path)


@pytest.mark.ompy(2, 3, mca=MESSAGES)
def test_what_goes_by_messages_ends(comm, tmp_path):
    everything(comm, tmp_path)


@pytest.mark.ompy(2, 3, mca=TCP)
def test_what_goes_over_tcp_ends(comm, tmp_path):
    everything(comm, tmp_path)


@pytest.mark.ompy(2, 3, mca=PORTALS)
def test_what_the_network_matches_ends(comm, tmp_path):
    everything(comm, tmp_path)


@pytest.mark.ompy(2)
def test_nobody_has_the_thread_who_did_not_ask(comm):
    assert "ompy-progress" not in [thread.name for thread in threading.enumerate()]


class Attributes(ctypes.Structure):
    """sched(7): of a thread's turns at the processor."""

    _fields_ = (("size", ctypes.c_uint32), ("policy", ctypes.c_uint32), ("flags", ctypes.c_uint64), ("nice", ctypes.c_int32),
                ("priority", ctypes.c_uint32), ("runtime", ctypes.c_uint64), ("deadline", ctypes.c_uint64),
                ("period", ctypes.c_uint64))  # fmt: skip


@pytest.mark.ompy(2, mca=MESSAGES)
@pytest.mark.skipif(tuple(map(int, os.uname().release.split(".")[:2])) < (6, 12), reason="asked for in vain before Linux 6.12")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the number of the system call")
def test_its_turns_are_shorter_than_the_programs_and_it_has_as_many(comm):
    turns = {}
    for thread in threading.enumerate():
        attributes = Attributes()
        assert ctypes.CDLL(None).syscall(315, thread.native_id, ctypes.byref(attributes), ctypes.sizeof(attributes), 0) == 0
        turns[thread.name] = attributes
    assert turns["ompy-progress"].runtime < turns["MainThread"].runtime
    assert turns["ompy-progress"].nice == turns["MainThread"].nice


@pytest.mark.ompy(3, mca=MESSAGES)
def test_threads_of_the_program_wait_beside_it(comm, ompy_rng):
    from ompy import MPI

    lanes = [comm.Dup() for _ in range(3)]
    sizes = [ompy_rng.choice([0, 8, 5000, 100_000]) for _ in range(100)]

    def exchange(lane):
        for number, size in enumerate(sizes):
            data, got = numpy.full(size, number % 100, "B"), numpy.zeros(size, "B")
            lane.Sendrecv(data, (lane.rank + 1) % lane.size, number, got, (lane.rank - 1) % lane.size, number)
            assert (got == data).all()
            assert lane.allreduce(1, MPI.SUM) == lane.size

    threads = [threading.Thread(target=exchange, args=(lane,)) for lane in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for lane in lanes:
        lane.Free()


@pytest.mark.ompy(2, mca=MESSAGES)
def test_a_forked_child_has_none_and_its_parent_goes_on(comm, tmp_path):
    child = os.fork()
    if child == 0:
        os._exit(len(threading.enumerate()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    long_messages_arrive(comm, tmp_path)


@pytest.mark.ompy(2, mca=MESSAGES)
def test_signal_handlers_run_in_the_main_thread_all_the_same(comm):
    seen = []
    signal.signal(signal.SIGUSR1, lambda *_: seen.append(threading.current_thread() is threading.main_thread()))
    for number in range(50):
        os.kill(os.getpid(), signal.SIGUSR1)
        comm.sendrecv(number, 1 - comm.rank, source=1 - comm.rank)
    assert seen == [True] * 50


def test_a_simulated_machine_refuses_it() -> None:
    options = ["-n", "2", "--mca", "mpi_async_progress", "1", "--mca", "pml", "rpi", "--mca", "rpi", "raw_v3"]
    command = [sys.executable, "-m", "ompy.cli.ompyrun", *options, sys.executable, "-c", "from ompy import MPI"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode != 0
    assert "mpi_async_progress: on a simulated machine time passes only while the program waits" in result.stderr


def what_targets_need(comm, allocated, dynamic):
    from ompy import MPI

    windows = MPI.Win.Allocate(8, comm=comm), MPI.Win.Create_dynamic(comm=comm)
    assert [window.Get_info()["ompy_target_progress"] for window in windows] == [allocated, dynamic]
    for window in windows:
        window.Free()


@pytest.mark.ompy(2)
def test_windows_tell_that_their_targets_need_nothing(comm):
    what_targets_need(comm, "none", "none")


@pytest.mark.ompy(2, mca={"osc_sm_single_copy": "none"})
def test_windows_tell_that_their_targets_must_call(comm):
    what_targets_need(comm, "none", "calls")


@pytest.mark.ompy(2, mca={**SHARED_MEMORY, "osc_sm_single_copy": "none"})
def test_windows_tell_that_a_thread_serves_them(comm):
    what_targets_need(comm, "none", "thread")


NO_THREAD = """
import threading
def refused(thread): raise RuntimeError("can't start new thread")
threading.Thread.start = refused
from ompy import MPI
"""


def test_where_there_can_be_no_thread_it_is_said_in_a_line():
    command = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", "1", "--mca", "mpi_async_progress", "1"]
    result = subprocess.run(
        [*command, sys.executable, "-c", NO_THREAD], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode != 0
    assert "no thread for asynchronous progress can be started (can't start new thread; ulimit -u)" in result.stderr
