"""Parts of files that are moved again and again are copies to and from their pages; and when a page is gone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from file_calls import path_of

from ompy import MPI, tool

READ_WRITE = MPI.MODE_RDWR | MPI.MODE_CREATE
EVERY_ACCESS = {"fbtl_posix_map_from": "1", "fbtl_posix_map_after": "0"}
LONG = 1 << 18


def counted(function, *names):
    """How far counters of this process's accesses to files go on while `function` runs."""
    with tool.Session() as session:
        handles = [session.handle(f"fbtl_posix_{name}") for name in names]
        session.start()
        function()
        session.stop()
        return [handle.read() for handle in handles]


@pytest.mark.ompy(1, 2)
def test_a_part_that_is_moved_again_and_again_is_copied(comm, tmp_path):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    place, data, got = LONG * comm.rank, np.zeros(LONG, np.uint8), np.empty(LONG, np.uint8)

    def turns():
        for turn in range(20):
            data[:] = turn + comm.rank
            file.Write_at(place, data)
            file.Read_at(place, got)
            assert (got == data).all()

    calls, copies, written, read = counted(turns, "calls", "copies", "bytes_written", "bytes_read")
    assert (calls + copies, written, read) == (40, 20 * LONG, 20 * LONG)
    assert copies >= 30
    comm.Barrier()
    everything = np.empty(comm.size * LONG, np.uint8)
    file.Read_at(0, everything)
    assert (everything == np.repeat(19 + np.arange(comm.size), LONG)).all()
    file.Close()


@pytest.mark.ompy(1)
def test_parts_that_are_moved_once_are_not_mapped(comm, tmp_path):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    data = np.ones(LONG, np.uint8)

    def forth():
        for turn in range(50):
            file.Write_at(turn * LONG, data)

    def anywhere():
        for turn in range(0, 50, 2):
            file.Write_at(60 * LONG + turn * LONG, data)
        for _ in range(20):
            file.Write_at(0, data[:100])

    assert counted(forth, "copies") == counted(anywhere, "copies") == [0]
    file.Close()


@pytest.mark.ompy(2, 4)
@pytest.mark.parametrize("piece", [8, 64, 4096])
def test_pieces_of_several_ranks_are_copied_side_by_side(comm, tmp_path, piece):
    rows = LONG // piece
    filetype = MPI.BYTE.Create_subarray([rows, comm.size * piece], [rows, piece], [0, comm.rank * piece]).Commit()
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE)
    file.Set_view(0, MPI.BYTE, filetype)
    data, got = np.zeros(LONG, np.uint8), np.empty(LONG, np.uint8)
    whole = np.empty(comm.size * LONG, np.uint8)

    def turn(number):
        data[:] = 10 * number + comm.rank
        file.Write_at_all(0, data)
        file.Read_at_all(0, got)
        assert (got == data).all()
        comm.Barrier()
        plain = MPI.File.Open(MPI.COMM_SELF, path, MPI.MODE_RDONLY)
        plain.Read_at(0, whole)
        plain.Close()
        assert (whole.reshape(rows, comm.size, piece) == 10 * number + np.arange(comm.size, dtype=np.uint8)[:, None]).all()
        comm.Barrier()

    for number in range(10):
        turn(number)
    calls, copies = counted(lambda: file.Read_at_all(0, got), "calls", "copies")
    assert (calls, copies) == (0, 1)
    calls, copies = counted(lambda: file.Write_at_all(0, data), "calls", "copies")
    assert (calls, copies) == (0, 1)
    file.Close()


@pytest.mark.ompy(1, mca=EVERY_ACCESS)
def test_what_is_behind_the_end_of_a_file_that_was_cut_off_is_no_data(comm, tmp_path):
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE)
    # The end is cut off within the second page, which stays.
    file.Write_at(0, np.full(8000, 1, np.uint8))
    got, status = np.zeros(8000, np.uint8), MPI.Status()
    file.Read_at(0, got, status)
    assert status.Get_count(MPI.BYTE) == 8000
    os.truncate(path, 5000)
    got[:] = 0
    file.Read_at(0, got, status)
    assert status.Get_count(MPI.BYTE) == got.sum() == 5000
    file.Write_at(0, np.full(8000, 2, np.uint8))
    assert os.path.getsize(path) == 8000
    file.Read_at(0, got, status)
    assert status.Get_count(MPI.BYTE) == 8000
    assert (got == 2).all()
    file.Close()


@pytest.mark.ompy(1, mca=EVERY_ACCESS)
def test_a_file_that_is_cut_off_meanwhile_ends_no_process(comm, tmp_path):
    path, nbytes = path_of(comm, tmp_path), 16 << 20
    file = MPI.File.Open(comm, path, READ_WRITE)
    data, got = np.ones(nbytes, np.uint8), np.empty(nbytes, np.uint8)
    file.Write_at(0, data)
    words = "import os, sys\nwhile True:\n os.truncate(sys.argv[1], 0)\n os.truncate(sys.argv[1], int(sys.argv[2]))"
    with subprocess.Popen([sys.executable, "-c", words, path, str(nbytes)]) as cutter:
        try:
            (copies,) = counted(lambda: [(file.Write_at(0, data), file.Read_at(0, got)) for _ in range(300)], "copies")
        finally:
            cutter.kill()
    assert copies < 600
    file.Write_at(0, data)
    file.Read_at(0, got)
    assert (got == 1).all()
    file.Close()


FULL = """
import numpy as np
from ompy import MPI, tool
file = MPI.File.Open(MPI.COMM_WORLD, "data", MPI.MODE_RDWR | MPI.MODE_CREATE)
file.Set_size(8 << 20)
before = np.full(1 << 20, 1, np.uint8)
file.Write_at(0, before)
whole = np.full(8 << 20, 2, np.uint8)
file.Set_view(0, MPI.BYTE, MPI.BYTE.Create_vector(1024, 1024, 2048).Create_resized(0, 2 << 20).Commit())
for call, data in ((file.Write_at, whole[: 4 << 20]), (file.Write_at_all, whole[: 4 << 20])):
    try:
        call(0, data)
    except MPI.Exception as error:
        print(error.Get_error_class() == MPI.ERR_NO_SPACE, "data" in str(error))
file.Set_view(0)
try:
    file.Write_at(0, whole)
except MPI.Exception as error:
    print(error.Get_error_class() == MPI.ERR_NO_SPACE, "data" in str(error))
got = np.zeros(1 << 20, np.uint8)
file.Read_at(0, got)
print((got == 2).all())
file.Close()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system that is full soon")
def test_a_hole_for_which_there_is_no_room_is_an_error(tmp_path: Path) -> None:
    room, program = tmp_path / "room", tmp_path / "program.py"
    room.mkdir()
    program.write_text(FULL)
    command = f"mount -t tmpfs -o size=3m tmpfs {room} && cd {room} && exec {sys.executable} {program}"
    environment = {**os.environ, **{f"OMPY_MCA_{name}": value for name, value in EVERY_ACCESS.items()}}
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", command], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n") == ["True True"] * 3 + ["True", ""]


OWN_ERRORS = """
import faulthandler, mmap, os, signal, sys
import numpy as np
from ompy import MPI
path = sys.argv[1]
file = MPI.File.Open(MPI.COMM_WORLD, path, MPI.MODE_RDWR | MPI.MODE_CREATE)
data, came = np.ones(100000, np.uint8), []
def access():
    file.Write_at(0, data)
    file.Read_at(0, data)
access()
access()
signal.signal(signal.SIGBUS, lambda *_: came.append(1))
for _ in range(3):
    access()
    os.kill(os.getpid(), signal.SIGBUS)
print(len(came))
signal.signal(signal.SIGBUS, signal.SIG_DFL)
access()
faulthandler.enable()
access()
with open(path + "2", "w+b") as other:
    other.truncate(8192)
    pages = mmap.mmap(other.fileno(), 8192)
    other.truncate(0)
print(pages[5000], flush=True)
"""


def test_bus_errors_of_the_programs_own_are_left_to_its_handlers(tmp_path: Path) -> None:
    environment = {**os.environ, **{f"OMPY_MCA_{name}": value for name, value in EVERY_ACCESS.items()}}
    done = subprocess.run(
        [sys.executable, "-u", "-c", OWN_ERRORS, str(tmp_path / "data")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "3\n"
    assert done.returncode == -7
    assert done.stderr.count("Fatal Python error: Bus error") == 1


@pytest.mark.ompy(1, mca=EVERY_ACCESS)
def test_a_closed_file_is_as_new_as_the_last_write(comm, tmp_path):
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE)
    data = np.ones(5000, np.uint8)
    file.Write_at(0, data)
    file.Write_at(0, data)
    os.utime(path, (1, 1))
    file.Write_at(0, data)
    file.Close()
    assert os.path.getmtime(path) > 1


@pytest.mark.ompy(1, mca=EVERY_ACCESS)
def test_threads_move_parts_that_are_mapped_in_turns(comm, tmp_path):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    # So far from one another that one mapping has room for one of them.
    threads, turns, reach, distance = 4, 200, 1 << 20, 1 << 31
    file.Set_size(threads * distance)
    wrong = []

    def work(number):
        dice = np.random.default_rng(number)
        mine = np.zeros(reach, np.uint8)
        for _ in range(turns):
            first, end = np.sort(dice.integers(0, reach, 2))
            mine[first:end] = dice.integers(1, 255)
            file.Write_at(number * distance + first, mine[first:end])
            first, end = np.sort(dice.integers(0, reach, 2))
            got = np.empty(end - first, np.uint8)
            file.Read_at(number * distance + first, got)
            if not (got == mine[first:end]).all():
                wrong.append((number, first, end))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
    file.Close()
