"""Files when something goes wrong: no room, no permission, a file or a rank that vanishes, other jobs and hosts; and very large
ones."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from file_calls import error_of, path_of
from late_signals import Late

from ompy import MPI
from ompy.mca import selection

READ_WRITE = MPI.MODE_RDWR | MPI.MODE_CREATE
NOBODY = 65534


def raised(function, *arguments):
    """What a call raises, whatever it is."""
    try:
        function(*arguments)
    except Exception as error:
        return error
    raise AssertionError("no error")


def interleave(comm, file, count=1):
    """Every rank sees every so manyth group of integers."""
    own = MPI.INT.Create_hindexed([count], [4 * count * comm.rank]).Create_resized(0, 4 * count * comm.size).Commit()
    file.Set_view(0, MPI.INT, own)


@contextmanager
def no_file_longer_than(nbytes):
    """As if the device had room for so much alone, for this process."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


@pytest.mark.ompy(2, 3)
@pytest.mark.parametrize("gathered", ["enable", "disable"])
def test_no_room_on_one_rank_is_an_error_on_every_rank_that_waits_and_what_was_written_stays(comm, tmp_path, gathered):
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE, MPI.Info.Create({"romio_cb_write": gathered, "cb_buffer_size": "65536"}))
    interleave(comm, file)
    before, more = np.arange(5000, dtype="i4"), np.arange(50000, dtype="i4")
    file.Write_at_all(0, before)
    comm.Barrier()
    last = comm.rank == comm.size - 1
    with no_file_longer_than(4 * 5000 * comm.size if last else resource.RLIM_INFINITY):
        if gathered == "enable" or last:
            error = error_of(file.Write_at_all, 5000, more)
            assert error.Get_error_class() == MPI.ERR_NO_SPACE
            assert path in str(error)
        else:
            file.Write_at_all(5000, more)
    comm.Barrier()
    got = np.zeros_like(before)
    file.Read_at_all(0, got)
    assert (got == before).all()
    file.Close()


@pytest.mark.ompy(2, 3)
def test_no_room_for_a_size_is_an_error_on_every_rank_and_what_was_written_stays(comm, tmp_path):
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE)
    file.Write_at_all(100 * comm.rank, np.full(100, comm.rank, "i1"))
    with no_file_longer_than(1000):
        for call in (file.Preallocate, file.Set_size):
            error = error_of(call, 1 << 20)
            assert error.Get_error_class() == MPI.ERR_NO_SPACE
            assert path in str(error)
    assert file.Get_size() == 100 * comm.size
    got = np.zeros(100 * comm.size, "i1")
    file.Read_at_all(0, got)
    assert (got == np.repeat(np.arange(comm.size), 100)).all()
    file.Close()


@pytest.mark.ompy(2, 3)
def test_no_room_on_one_rank_at_the_shared_pointer_is_nobody_else_s_error(comm, tmp_path):
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE)
    mine = np.full(500, comm.rank, "i1")
    # Behind the first rank's 500 bytes, wherever that is, there is none.
    last = comm.rank == comm.size - 1
    with no_file_longer_than(499 if last else resource.RLIM_INFINITY):
        if not last:
            file.Write_shared(mine)
        comm.Barrier()
        for call in (file.Write_ordered, file.Write_shared):
            error = error_of(call, mine) if last else call(mine)
            assert not last or (error.Get_error_class() == MPI.ERR_NO_SPACE and path in str(error))
    comm.Barrier()
    # Each had its place all the same.
    assert file.Get_position_shared() == 500 * (3 * comm.size - 1)
    got = np.full((2 * comm.size - 1, 500), -1, "i1")
    file.Read_at(0, got)
    assert sorted(set(got[: comm.size - 1, 0])) == list(range(comm.size - 1))
    assert (got[comm.size - 1 : -1] == np.arange(comm.size - 1)[:, None]).all()
    file.Close()


@pytest.mark.ompy(2, 3)
def test_a_collective_write_under_locks_that_fails_leaves_none(comm, tmp_path):
    leaves_no_lock(comm, tmp_path)


@pytest.mark.ompy(2, 3, mca={"fcoll_two_phase_exchange": "messages"})
def test_a_collective_write_under_locks_by_messages_that_fails_leaves_none(comm, tmp_path):
    leaves_no_lock(comm, tmp_path)


def leaves_no_lock(comm, tmp_path):
    path = path_of(comm, tmp_path)
    hints = {"romio_cb_write": "enable", "romio_ds_write": "enable", "cb_buffer_size": "65536"}
    file = MPI.File.Open(comm, path, READ_WRITE, MPI.Info.Create(hints))
    # With holes, which are read and written back under locks.
    own = MPI.INT.Create_hindexed([1], [4 * comm.rank]).Create_resized(0, 8 * comm.size).Commit()
    file.Set_view(0, MPI.INT, own)
    with no_file_longer_than(1000):
        assert error_of(file.Write_at_all, 0, np.arange(50000, dtype="i4")).Get_error_class() == MPI.ERR_NO_SPACE
    comm.Barrier()
    # A process sees no locks of its own, and two that try at once would see each other's.
    lock = f"import fcntl; fcntl.lockf(open({path!r}, 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    if comm.rank == 0:
        assert subprocess.run([sys.executable, "-c", lock], timeout=60).returncode == 0
    comm.Barrier()
    file.Close()


@pytest.mark.ompy(2)
def test_a_failed_non_blocking_write_is_found_at_its_end(comm, tmp_path):
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE)
    with no_file_longer_than(1000):
        for begin in (file.Iwrite_at, file.Iwrite_at_all):
            error = error_of(begin(100000, b"x").Wait)
            assert error.Get_error_class() == MPI.ERR_NO_SPACE
            assert path in str(error)
    file.Close()


@pytest.mark.ompy(2)
def test_a_file_without_permission_is_an_error_on_every_rank(comm, tmp_path):
    path = path_of(comm, tmp_path)
    if comm.rank == 0:
        with open(path, "wb") as made:
            made.write(b"secret")
        os.chmod(path, 0)
    comm.Barrier()
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        error = error_of(MPI.File.Open, comm, path, MPI.MODE_RDONLY)
    finally:
        if is_root:
            os.seteuid(0)
    assert error.Get_error_class() == MPI.ERR_ACCESS
    assert path in str(error)


@pytest.mark.ompy(2)
def test_one_rank_alone_may_not_open_it(comm, tmp_path):
    path = path_of(comm, tmp_path)
    if os.geteuid() != 0:
        pytest.skip("takes permissions away from one rank, which root alone can")
    if comm.rank == 0:
        with open(path, "wb") as made:
            made.write(b"secret")
        os.chmod(path, 0o600)
    comm.Barrier()
    if comm.rank == 1:
        os.seteuid(NOBODY)
    try:
        error = error_of(MPI.File.Open, comm, path, MPI.MODE_RDONLY)
    finally:
        if comm.rank == 1:
            os.seteuid(0)
    assert error.Get_error_class() == MPI.ERR_ACCESS
    assert path in str(error)


@pytest.mark.ompy(2)
@pytest.mark.parametrize("hints", [{}, {"romio_ds_write": "enable"}, {"romio_cb_write": "enable"}])
def test_a_file_that_may_only_be_written_is_written_around_holes(comm, tmp_path, monkeypatch, hints):
    path, opened = path_of(comm, tmp_path), os.open
    before = np.arange(400, dtype="i4") + 7
    if comm.rank == 0:
        before.tofile(path)
    comm.Barrier()

    def without_permission_to_read(name, flags, *more):
        if name == path and not flags & os.O_WRONLY:
            raise PermissionError(13, "Permission denied")
        return opened(name, flags, *more)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", without_permission_to_read)
        assert error_of(MPI.File.Open, comm, path, READ_WRITE).Get_error_class() == MPI.ERR_ACCESS
        file = MPI.File.Open(comm, path, MPI.MODE_WRONLY | MPI.MODE_UNIQUE_OPEN, MPI.Info.Create(hints))
    file.Set_view(0, MPI.INT, MPI.INT.Create_hindexed([1], [4 * comm.rank]).Create_resized(0, 16).Commit())
    mine = np.arange(50, dtype="i4") - comm.rank
    file.Write_all(mine)
    file.Write(mine)
    file.Close()
    comm.Barrier()
    wanted = before.reshape(-1, 4).copy()
    for rank in range(comm.size):
        wanted[:, rank] = np.tile(np.arange(50), 2) - rank
    assert (np.fromfile(path, "i4") == wanted.reshape(-1)).all()


@pytest.mark.ompy(2)
def test_a_file_that_vanished_is_an_error_at_its_deletion_on_every_rank(comm, tmp_path):
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE | MPI.MODE_DELETE_ON_CLOSE)
    interleave(comm, file)
    if comm.rank == 0:
        os.unlink(path)
    comm.Barrier()
    data, got = np.arange(100, dtype="i4"), np.zeros(100, "i4")
    file.Write_at_all(0, data)
    file.Read_at_all(0, got)
    assert (got == data).all()
    error = error_of(file.Close)
    assert error.Get_error_class() == MPI.ERR_NO_SUCH_FILE
    assert path in str(error)


@pytest.mark.ompy(2, 3)
@pytest.mark.parametrize("gathered", ["enable", "disable"])
def test_reads_end_where_the_file_does(comm, tmp_path, gathered):
    hints = MPI.Info.Create({"romio_cb_read": gathered, "cb_buffer_size": "4096"})
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE, hints)
    interleave(comm, file)
    written = 4000 if comm.rank else 4001
    file.Write_at_all(0, np.arange(written, dtype="i4"))
    comm.Barrier()
    status = MPI.Status()
    for read in (file.Read_at_all, file.Read_at):
        got = np.full(9000, -1, "i4")
        read(100, got, status)
        assert status.Get_count(MPI.INT) == written - 100
        assert (got[: written - 100] == np.arange(100, written)).all()
        assert (got[written - 100 :] == -1).all()
        read(100000, got, status)
        assert status.Get_count(MPI.INT) == 0
    file.Close()


def job(*arguments, ranks=2):
    """A job of its own."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OMPY_", "PMI_"))}
    launcher = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", str(ranks), "--oversubscribe", "--timeout", "60"]
    return subprocess.Popen(
        [*launcher, sys.executable, *arguments], env=clean, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


TWO_JOBS = """
import sys
import numpy as np
from ompy import MPI
comm, number, path = MPI.COMM_WORLD, int(sys.argv[1]), sys.argv[2]
file = MPI.File.Open(comm, path, MPI.MODE_RDWR | MPI.MODE_CREATE, MPI.Info.Create({"romio_ds_write": "enable"}))
place = 2 * comm.rank + number
file.Set_view(0, MPI.INT, MPI.INT.Create_hindexed([1], [4 * place]).Create_resized(0, 8 * comm.size).Commit())
for begin in range(0, 3000, 100):
    data = np.arange(begin, begin + 100, dtype="i4") * 4 + place
    if begin % 200:
        file.Write_at_all(begin, data)
    else:
        file.Write_at(begin, data)
file.Close()
"""


def test_two_jobs_that_write_between_each_other_s_bytes_under_locks_lose_none(tmp_path):
    path = tmp_path / "data"
    jobs = [job("-c", TWO_JOBS, str(number), str(path)) for number in range(2)]
    for each in jobs:
        _, errors = each.communicate(timeout=90)
        assert each.returncode == 0, errors
    assert (np.fromfile(path, "i4") == np.arange(12000)).all()


LOCKED_FILE = """
import os, sys
os.environ["OMPY_MCA_sharedfp"] = "lockedfile"
import numpy as np
from ompy import MPI
"""

SHARING = (
    LOCKED_FILE
    + """
comm = MPI.COMM_WORLD
file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_RDWR | MPI.MODE_CREATE)
open(sys.argv[1] + "-is-open-" + sys.argv[2], "w").close()
while not os.path.exists(sys.argv[1] + "-is-open-" + str(1 - int(sys.argv[2]))):
    pass
for _ in range(100):
    file.Write_shared(b"x")
comm.Barrier()
assert file.Get_position_shared() == 100 * comm.size
if sys.argv[3] == "killed":
    os.kill(os.getpid(), 9)
file.Close()
"""
)


def test_the_shared_pointer_in_a_file_is_each_job_s_own(tmp_path):
    path = tmp_path / "data"
    for ends in ("killed", "closed"):
        jobs = [job("-c", SHARING, str(path), str(number), ends) for number in range(2)]
        for each in jobs:
            _, errors = each.communicate(timeout=90)
            assert each.returncode == 0 or ends == "killed", errors
            assert "Error" not in errors
        for number in range(2):
            os.unlink(f"{path}-is-open-{number}")


TWO_HOSTS = """
import os, sys
rank = int(os.environ["PMI_RANK"])
if rank == 2:
    here = os.uname()
    os.uname = lambda: os.uname_result((here.sysname, "elsewhere", *here[2:]))
os.environ["MPI_LOCALNRANKS"] = "1" if rank == 2 else "2"
import numpy as np
from ompy import MPI, tool
world = MPI.COMM_WORLD
for comm, nodes in ((world, 0), (world, 3), (world.Split(rank // 2), 0)):
    os.mkdir(f"{sys.argv[1]}/{rank}-{comm.size}-{nodes}")
    folder = comm.bcast(f"{sys.argv[1]}/{rank}-{comm.size}-{nodes}")
    file = MPI.File.Open(comm, f"{folder}/data", MPI.MODE_RDWR | MPI.MODE_CREATE, MPI.Info.Create({"cb_nodes": str(nodes)}))
    file.Set_view(0, MPI.INT, MPI.INT.Create_hindexed([1], [4 * comm.rank]).Create_resized(0, 4 * comm.size).Commit())
    mine, got = np.arange(10_000, dtype="i4"), np.zeros(10_000, "i4")
    with tool.Session() as session:
        calls = session.handle("fbtl_posix_calls")
        session.start()
        file.Write_all(mine)
        session.stop()
        # One rank of each host writes what messages have brought, or each rank a part of what is in shared memory.
        assert calls.read() == (rank != 1 if comm is world and not nodes else 1)
    comm.Barrier()
    file.Read_at_all(0, got)
    assert (got == mine).all()
    comm.Barrier()
    file.Set_view(0, MPI.INT)
    file.Write_ordered(np.full(1, comm.rank, "i4"))
    comm.Barrier()
    assert file.Get_position_shared() == comm.size
    assert (np.fromfile(f"{folder}/data", "i4", comm.size) == np.arange(comm.size)).all()
    assert len(os.listdir(folder)) == (2 if comm is world else 1)
    file.Close()
"""


def test_ranks_of_one_host_put_pieces_together_in_memory_and_those_of_several_by_messages(tmp_path):
    done = job("-c", TWO_HOSTS, str(tmp_path), ranks=3)
    _, errors = done.communicate(timeout=90)
    assert done.returncode == 0, errors


UNWRITABLE = (
    LOCKED_FILE
    + """
comm = MPI.COMM_WORLD
os.chdir(sys.argv[1])
MPI.File.Open(comm, "data", MPI.MODE_RDONLY).Close()
comm.Barrier()
os.seteuid(65534)
file = MPI.File.Open(comm, "data", MPI.MODE_RDONLY)
file.Set_view(0, MPI.INT)
got = np.zeros(1, "i4")
file.Read_at_all(0, got)
assert got[0] == 7
for call in (lambda: file.Read_shared(got), lambda: file.Read_ordered(got), file.Get_position_shared):
    try:
        call()
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_ACCESS
        assert "shared pointer" in str(error)
    else:
        raise AssertionError("no error")
file.Close()
os.seteuid(0)
"""
)


def test_a_file_is_read_from_a_folder_that_takes_no_hidden_file(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("takes permissions away, which root alone can")
    path = tmp_path / "data"
    np.full(1, 7, "i4").tofile(path)
    os.chmod(tmp_path, 0o755)
    done = job("-c", UNWRITABLE, str(tmp_path))
    _, errors = done.communicate(timeout=90)
    assert done.returncode == 0, errors
    assert os.listdir(tmp_path) == ["data"]


@pytest.mark.ompy(2)
def test_no_descriptors_left_on_one_rank_is_an_error_on_every_rank_that_names_the_file(comm, tmp_path):
    path, opened = path_of(comm, tmp_path), []
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if comm.rank == 1:
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 8, before[1]))

    def open_many():
        while len(opened) < 20:
            opened.append(MPI.File.Open(comm, path, READ_WRITE))

    try:
        error = error_of(open_many)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert path in str(error)
    for file in opened:
        file.Close()
    file = MPI.File.Open(comm, path, READ_WRITE)
    file.Write_ordered(b"x")
    file.Close()


DYING = """
import os, signal, sys
import numpy as np
from ompy import MPI
comm = MPI.COMM_WORLD
file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_RDWR | MPI.MODE_CREATE)
file.Set_view(0, MPI.INT, MPI.INT.Create_hindexed([1], [4 * comm.rank]).Create_resized(0, 4 * comm.size).Commit())
data = np.arange(1000, dtype="i4")
file.Write_at_all(0, data)
request = file.Iwrite_at_all(1000, data)
if comm.rank == 1:
    print(os.getpid(), flush=True)
    signal.pause()
file.Write_at_all(2000, data)
"""


def test_a_rank_killed_in_a_collective_write_ends_the_job_and_what_was_written_stays(tmp_path):
    path = tmp_path / "data"
    done = job("-c", DYING, str(path), ranks=3)
    dying = int(done.stdout.readline())
    state = [sys.executable, "-m", "ompy.cli.ompyrun", "--report-state", str(done.pid)]
    while subprocess.run(state, capture_output=True, text=True, check=True).stdout.count(" File_write ") < 2:
        pass
    os.kill(dying, signal.SIGKILL)
    _, errors = done.communicate(timeout=90)
    assert done.returncode == 128 + signal.SIGKILL
    assert "rank 1 " in errors
    # The file's name is long: its beginning and its end are told.
    assert re.search(rf"rank 0, 2 waited in File_write of .*{re.escape(str(path)[-20:])}\n", errors)
    assert (np.fromfile(path, "i4")[:3000] == np.repeat(np.arange(1000), 3)).all()


@pytest.mark.ompy(2)
def test_what_the_device_has_no_room_for_is_not_begun(comm, tmp_path):
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE)
    file.Preallocate(5000)
    asked = []
    fallocate, os.posix_fallocate = os.posix_fallocate, lambda *arguments: asked.append(arguments)
    try:
        assert error_of(file.Preallocate, 1 << 55).Get_error_class() == MPI.ERR_NO_SPACE
    finally:
        os.posix_fallocate = fallocate
    assert not asked
    assert file.Get_size() == 5000
    file.Close()


@pytest.mark.ompy(2, 3)
def test_what_a_signal_handler_raises_in_a_collective_write_comes_at_its_end(comm, tmp_path):
    path = path_of(comm, tmp_path)
    hints = MPI.Info.Create({"romio_cb_write": "enable", "cb_buffer_size": "4096"})
    file = MPI.File.Open(comm, path, READ_WRITE, hints)
    interleave(comm, file)

    def raise_late(*_):
        # All ranks are in the middle of it once there is something in the file.
        if os.path.getsize(path):
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise Late

    data, got = np.arange(100000, dtype="i4"), np.zeros(100000, "i4")
    if comm.rank == 1:
        signal.signal(signal.SIGALRM, raise_late)
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        assert isinstance(raised(file.Write_at_all, 0, data), Late)
    else:
        file.Write_at_all(0, data)
    comm.Barrier()
    file.Read_at_all(0, got)
    assert (got == data).all()
    file.Close()


@pytest.mark.ompy(2)
def test_a_sparse_file_of_64_gib(comm, tmp_path):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE | MPI.MODE_DELETE_ON_CLOSE)
    size = 64 << 30
    file.Set_size(size)
    assert file.Get_size() == size
    # A view whose pieces are 4 GiB apart, and one piece of each rank's in each gap.
    own = MPI.INT.Create_hindexed([1], [4 * comm.rank]).Create_resized(0, 4 << 30).Commit()
    file.Set_view(0, MPI.INT, own)
    data, got, status = np.arange(16, dtype="i4") + comm.rank, np.zeros(20, "i4"), MPI.Status()
    file.Write_at_all(0, data)
    file.Read_at_all(0, got, status)
    assert status.Get_count(MPI.INT) == 16
    assert (got[:16] == data).all()
    assert file.Get_byte_offset(1 << 20) == (4 << 50) + 4 * comm.rank
    assert file.Get_size() == size
    file.Close()


def free_memory():
    with open("/proc/meminfo") as source:
        return next(int(line.split()[1]) for line in source if line.startswith("MemAvailable")) * 1024


@pytest.mark.long
@pytest.mark.ompy(1)
def test_counts_beyond_two_to_the_thirty_first(comm, tmp_path):
    count = (1 << 31) + 1000
    if not os.path.exists("/proc/meminfo") or free_memory() < 2 * count:
        pytest.skip(f"takes {count} bytes of memory")
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE | MPI.MODE_DELETE_ON_CLOSE)
    file.Write_at(count + 5, b"the end")
    got, status = np.empty(count, np.uint8), MPI.Status()
    file.Read_at(12, got, status)
    assert status.Get_count(MPI.BYTE) == count
    assert got[-7:].tobytes() == b"the end"
    file.Read_at(100, got, status)
    assert status.Get_count(MPI.BYTE) == count - 88
    file.Close()


GOOD = np.arange(1000, dtype="i4")
# What is wrong -> the call, and the offset and the buffer that one rank gives it.
WRONG = {
    "an offset before the view": (lambda file, offset, buf: file.Write_at_all(offset, buf), -1, GOOD),
    "an offset that is no number": (lambda file, offset, buf: file.Write_at_all(offset, buf), "1", GOOD),
    "an offset beyond all numbers": (lambda file, offset, buf: file.Read_at_all(offset, buf), 1 << 70, GOOD.copy()),
    "an offset beyond all files": (lambda file, offset, buf: file.Read_at_all(offset, buf), (1 << 61) + 1, GOOD.copy()),
    "no buffer": (lambda file, offset, buf: file.Write_at_all(offset, buf), 0, "text"),
    "memory that can't be written": (lambda file, offset, buf: file.Read_at_all(offset, buf), 0, bytes(4000)),
    "half an etype": (lambda file, _, buf: file.Write_all(buf), 0, GOOD.view("u1")[:3]),
    "no buffer, in order": (lambda file, _, buf: file.Write_ordered(buf), 0, "text"),
    "no buffer, non-blocking": (lambda file, offset, buf: file.Iwrite_at_all(offset, buf).Wait(), 0, "text"),
    "no buffer, split": (lambda file, _, buf: (file.Read_all_begin(buf), file.Read_all_end(buf)), 0, "text"),
}


@pytest.mark.ompy(2, 3)
@pytest.mark.parametrize("atomic", [False, True])
def test_wrong_arguments_on_one_rank_are_an_error_on_every_rank_that_waits(comm, tmp_path, atomic):
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE)
    interleave(comm, file)
    file.Write_at_all(0, GOOD)
    file.Set_atomicity(atomic)
    for name, (call, offset, buf) in WRONG.items():
        if comm.rank == 1:
            raised(call, file, offset, buf)
        elif atomic:
            call(file, 0, GOOD.copy())  # each rank by itself
        else:
            error = raised(call, file, 0, GOOD.copy())
            assert path in str(error), name
            assert "rank 1" in str(error), name
    got = np.zeros_like(GOOD)
    file.Write_at_all(0, GOOD)
    comm.Barrier()
    file.Read_at_all(0, got)
    assert (got == GOOD).all()
    file.Close()


@pytest.mark.ompy(2, 3)
def test_wrong_arguments_on_one_rank_of_calls_on_the_file_are_an_error_on_every_rank(comm, tmp_path):
    path = path_of(comm, tmp_path)
    is_wrong = comm.rank == 1
    calls = [lambda: MPI.File.Open(comm, 5 if is_wrong else path, READ_WRITE)]
    calls.append(lambda: MPI.File.Open(comm, path, "r" if is_wrong else READ_WRITE))
    calls.append(lambda: MPI.File.Open(comm, path, READ_WRITE, {} if is_wrong else MPI.INFO_NULL))
    for call in calls:
        assert is_wrong or path in str(raised(call))
        assert not is_wrong or raised(call)
    file = MPI.File.Open(comm, path, READ_WRITE)
    calls = [
        lambda: file.Set_view("0" if is_wrong else 0),
        lambda: file.Set_view(0, 4 if is_wrong else MPI.INT),
        lambda: file.Set_view(0, MPI.INT, MPI.INT, 7 if is_wrong else "native"),
        lambda: file.Set_view(0, MPI.INT, MPI.INT, "native", 7 if is_wrong else MPI.INFO_NULL),
        lambda: file.Set_size("0" if is_wrong else 0),
        lambda: file.Preallocate(1 << 70 if is_wrong else 0),
        lambda: file.Set_info(3 if is_wrong else MPI.INFO_NULL),
        lambda: file.Seek_shared(0, 99 if is_wrong else MPI.SEEK_SET),
        lambda: file.Seek_shared("0" if is_wrong else 0),
    ]
    for call in calls:
        error = raised(call)
        assert is_wrong or (path in str(error) and "rank 1" in str(error))
    file.Close()


@pytest.mark.ompy(1, 2)
def test_a_write_beyond_two_to_the_thirty_first_moves_all_of_it(comm):
    count = (1 << 31) + 1000
    file = MPI.File.Open(comm, "/dev/null", MPI.MODE_WRONLY)
    plain = np.zeros(count, np.uint8)  # never touched, so it takes no memory
    status = MPI.Status()
    for write in (file.Write_at, file.Write_at_all):
        write(1 << 40, plain, status)
        assert status.Get_count(MPI.BYTE) == count
    file.Close()


DIFFERENT = """
import os, sys
if os.environ["PMI_RANK"] == "1":
    os.environ["OMPY_MCA_" + sys.argv[2]] = sys.argv[3]
from ompy import MPI
try:
    MPI.File.Open(MPI.COMM_WORLD, sys.argv[1], MPI.MODE_RDWR | MPI.MODE_CREATE)
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_NOT_SAME
    assert sys.argv[1] in str(error)
    print("told", str(error))
"""


@pytest.mark.parametrize(("framework", "other"), [("fcoll", "individual"), ("sharedfp", "lockedfile")])
def test_ranks_whose_files_other_components_serve_are_told(tmp_path, framework, other):
    each = job("-c", DIFFERENT, str(tmp_path / "data"), framework, other, ranks=3)
    out, errors = each.communicate(timeout=90)
    assert each.returncode == 0, errors
    assert out.count("told") == 3, out
    assert out.count(f"{framework}/{other}") == 1


@pytest.mark.ompy(2, 3)
def test_who_finds_no_component_for_a_file_is_an_error_on_every_rank(comm, tmp_path, monkeypatch):
    path = path_of(comm, tmp_path)
    if comm.rank == 1:
        with monkeypatch.context() as patch:
            patch.setattr(selection, "candidates", lambda framework: ([], {}))
            error = error_of(MPI.File.Open, comm, path, READ_WRITE)
            assert "no io component" in str(error)
    else:
        error = error_of(MPI.File.Open, comm, path, READ_WRITE)
        assert "rank 1" in str(error)
    assert path in str(error)
    MPI.File.Open(comm, path, READ_WRITE).Close()
