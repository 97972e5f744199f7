"""A child made by fork is no rank: it can't reach the job, and the job can't be hurt by it."""

from __future__ import annotations

import os

import pytest

HEAP = {"mpi_numpy_heap": 65536}


def child(body) -> int:
    """Run it in a forked child, which ends as Python does; returns the exit code."""
    import sys

    pid = os.fork()
    if pid == 0:
        try:
            body()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(3)
        # As at the end of a program, without the frames of the test above.
        import atexit

        atexit._run_exitfuncs()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.ompy(2, mca=HEAP)
def test_what_a_child_writes_into_the_shared_heap_or_frees_there_stays_its_own():
    import numpy

    from ompy import MPI

    comm = MPI.COMM_WORLD
    before = numpy.ones(1 << 17)
    shared = numpy.frombuffer(MPI.Alloc_mem(1 << 20), "u1")
    shared[:] = 1
    large = [numpy.ones((300 << 20) // 8)]

    def body():
        own = [numpy.full(1 << 17, -5.0) for _ in range(4)]
        before[:] = shared[:] = 7
        assert all((array == -5).all() for array in own)
        assert (before == 7).all()
        large.clear()

    ready, go = os.pipe()
    after = []

    def parent_allocates_first():
        os.read(ready, 1)
        body()

    pid = os.fork()
    if pid == 0:
        try:
            parent_allocates_first()
        finally:
            os._exit(0)
    after = [numpy.full(1 << 17, 3.0) for _ in range(4)]
    os.write(go, b"x")
    assert os.waitpid(pid, 0)[1] == 0
    assert all((array == 3).all() for array in after)
    assert (before == 1).all()
    assert (shared == 1).all()
    assert (large[0] == 1).all()
    comm.Barrier()


@pytest.mark.ompy(2)
def test_a_child_that_ends_as_python_does_leaves_the_job_alone():
    from ompy import MPI

    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        assert child(lambda: None) == 0
    assert comm.allreduce(1) == 2


@pytest.mark.ompy(1, 2)
@pytest.mark.parametrize("whose", ["COMM_SELF", "COMM_WORLD"])
def test_a_child_writes_to_a_file_that_its_parent_has_open_and_closes_it(whose, tmp_path):
    from ompy import MPI

    comm = getattr(MPI, whose)
    path = str(MPI.COMM_WORLD.bcast(tmp_path) / (f"data{MPI.COMM_WORLD.rank}" if whose == "COMM_SELF" else "data"))
    file = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR)

    def body():
        file.Write_at(10 * comm.rank, b"child")
        request = file.Iwrite_at(10 * comm.rank + 5, b"again")
        request.Wait()
        file.Close()

    # One after the other: the second one's would wait for the first one's if they met.
    for rank in range(comm.size):
        if comm.rank == rank:
            assert child(body) == 0
        comm.Barrier()
    mine = bytearray(10)
    file.Iread_at(10 * comm.rank, mine).Wait()
    assert mine == b"childagain"
    file.Close()


@pytest.mark.ompy(2)
def test_an_exception_in_a_child_does_not_end_the_job():
    from ompy import MPI

    comm = MPI.COMM_WORLD

    def fail():
        raise ValueError("the child's own")

    assert child(fail) == 3
    assert comm.allreduce(1) == 2


@pytest.mark.ompy(2)
def test_a_child_knows_its_parents_rank_and_every_communication_of_its_is_an_error():
    from ompy import MPI

    comm = MPI.COMM_WORLD
    rank = comm.rank
    pending = comm.Irecv(bytearray(8), 1 - rank, 5)
    window = MPI.Win.Allocate(64, comm=comm)

    def body():
        assert (comm.Get_rank(), comm.Get_size(), MPI.Is_initialized(), MPI.Is_finalized()) == (rank, 2, True, True)
        for call in (
            lambda: comm.Send(b"x", 1 - rank),
            lambda: comm.send(1, 1 - rank),
            lambda: comm.Recv(bytearray(1), 1 - rank),
            lambda: comm.recv(),
            lambda: comm.Iprobe(),
            lambda: comm.Probe(),
            lambda: comm.Mprobe(),
            lambda: comm.Isend(b"x", 1 - rank),
            lambda: comm.Irecv(bytearray(1), 1 - rank),
            lambda: comm.Recv_init(bytearray(1), 1 - rank),
            lambda: comm.Barrier(),
            lambda: comm.Ibarrier(),
            lambda: comm.bcast(1),
            lambda: comm.allgather(1),
            lambda: comm.Dup(),
            lambda: comm.Split(),
            lambda: window.Fence(),
            lambda: window.Lock(0),
            lambda: window.Put(b"x", 0),
            lambda: pending.Wait(),
            lambda: MPI.Init(),
            lambda: MPI.Finalize(),
        ):
            try:
                call()
            except MPI.Exception:
                continue
            raise AssertionError(f"{call.__code__.co_names} raised nothing")

    assert child(body) == 0
    comm.Barrier()  # a message that had come before the other's child began would be the child's to wait for
    comm.Send(bytearray(8), 1 - rank, 5)
    pending.Wait()
    window.Free()
    comm.Barrier()


@pytest.mark.ompy(2)
def test_a_program_that_a_rank_starts_is_a_job_of_its_own():
    import subprocess
    import sys

    from ompy import MPI

    comm = MPI.COMM_WORLD
    source = "from ompy import MPI; print(MPI.COMM_WORLD.size)"
    found = subprocess.run([sys.executable, "-c", source], close_fds=False, capture_output=True, text=True, timeout=60)
    assert (found.stdout, found.stderr) == ("1\n", "")
    assert os.system(f"{sys.executable} -c 'from ompy import MPI; raise SystemExit(MPI.COMM_WORLD.size)'") == 1 << 8
    assert comm.allreduce(1) == 2


@pytest.mark.ompy(2)
def test_the_descriptors_of_a_rank_are_not_handed_on_to_programs():
    from ompy import MPI

    MPI.COMM_WORLD.Barrier()
    kept = {int(name) for name in os.listdir("/proc/self/fd")}
    found = []
    for number in kept:
        try:
            if os.get_inheritable(number) and number > 2:
                found.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            continue
    assert not [name for name in found if "ompy" in name or "socket" in name], found


CALLS_AFTER_THE_END = [
    "comm.Send(b'x', 0)", "comm.send(1, 0)", "comm.Recv(bytearray(1), 0)", "comm.Barrier()", "comm.Ibarrier()", "comm.Iprobe()",
    "comm.Improbe()", "comm.Dup()", "comm.Split()", "comm.bcast(1)", "comm.gather(1)", "pending.Wait()", "comm.Probe()",
    "MPI.Win.Create(None, comm=comm)", "window.Fence()", "comm.Irecv(bytearray(1), 0)", "comm.Send_init(b'x', 0)",
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS_AFTER_THE_END)
def test_a_call_after_finalisation_is_an_error(call):
    import subprocess
    import sys

    source = f"""
from ompy import MPI
comm = MPI.COMM_WORLD
pending = comm.Irecv(bytearray(8), 0, 99)
window = MPI.Win.Allocate(64, comm=comm)
MPI.Finalize()
try:
    {call}
except MPI.Exception as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60)
    assert "MPI was finalised" in found.stdout, found.stderr
    assert found.returncode == 0


@pytest.mark.ompy(1, mca={"sharedfp": "lockedfile"})
def test_a_child_uses_a_file_that_another_thread_was_using_when_it_was_made(tmp_path, monkeypatch):
    import signal
    import threading

    from ompy_sharedfp_lockedfile.module import LockedFile

    from ompy import MPI

    file = MPI.File.Open(MPI.COMM_SELF, str(tmp_path / "data"), MPI.MODE_RDWR | MPI.MODE_CREATE)
    file.Set_atomicity(True)
    inside, over = threading.Event(), threading.Event()

    def load(pointer):
        inside.set()
        over.wait()
        return 0

    def body():
        signal.alarm(30)
        file.Write_at(0, b"child")

    monkeypatch.setattr(LockedFile, "load", load)
    thread = threading.Thread(target=file.Get_position_shared)
    thread.start()
    inside.wait()
    try:
        assert child(body) == 0
    finally:
        over.set()
        thread.join()
    monkeypatch.undo()
    assert (tmp_path / "data").read_bytes() == b"child"
    file.Close()
