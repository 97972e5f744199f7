"""Files as a whole: opening, modes, sizes, hints, views, representations, error classes."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import sys
import threading

import numpy as np
import pytest
from file_calls import error_of, path_of
from late_signals import Late, raise_late, until_late

from ompy import MPI
from ompy.core.lane import Lane

READ_WRITE = MPI.MODE_RDWR | MPI.MODE_CREATE


@pytest.mark.ompy(1, 2)
@pytest.mark.parametrize(
    "mode",
    [
        0,
        MPI.MODE_RDONLY | MPI.MODE_RDWR,
        MPI.MODE_RDONLY | MPI.MODE_CREATE,
        MPI.MODE_RDONLY | MPI.MODE_EXCL,
        MPI.MODE_RDWR | MPI.MODE_SEQUENTIAL,
        MPI.MODE_RDWR | 1 << 20,
    ],
)
def test_modes_that_make_no_sense_are_refused(comm, tmp_path, mode):
    assert error_of(MPI.File.Open, comm, path_of(comm, tmp_path), mode).Get_error_class() == MPI.ERR_AMODE


@pytest.mark.ompy(2)
def test_a_failed_open_fails_on_every_rank_and_names_the_file(comm, tmp_path):
    missing = path_of(comm, tmp_path, "missing")
    error = error_of(MPI.File.Open, comm, missing)
    assert error.Get_error_class() == MPI.ERR_NO_SUCH_FILE
    assert missing in str(error)
    folder = path_of(comm, tmp_path, "folder")
    if comm.rank == 0:
        os.mkdir(folder)
    comm.Barrier()
    for mode in (MPI.MODE_RDONLY, READ_WRITE):
        error = error_of(MPI.File.Open, comm, folder, mode)
        assert error.Get_error_class() == MPI.ERR_BAD_FILE
        assert folder in str(error)
    there = path_of(comm, tmp_path)
    MPI.File.Open(comm, there, READ_WRITE | MPI.MODE_EXCL).Close()
    error = error_of(MPI.File.Open, comm, there, READ_WRITE | MPI.MODE_EXCL)
    assert error.Get_error_class() == MPI.ERR_FILE_EXISTS
    assert error_of(MPI.File.Open, comm, there + "/below", READ_WRITE).Get_error_class() == MPI.ERR_BAD_FILE
    comm.Barrier()
    if comm.rank == 0:
        MPI.File.Delete(there)
        assert error_of(MPI.File.Delete, there).Get_error_class() == MPI.ERR_NO_SUCH_FILE


@pytest.mark.ompy(2)
def test_modes_that_differ_are_an_error_on_every_rank(comm, tmp_path):
    mode = MPI.MODE_RDONLY if comm.rank else READ_WRITE
    assert error_of(MPI.File.Open, comm, path_of(comm, tmp_path), mode).Get_error_class() == MPI.ERR_NOT_SAME


@pytest.mark.ompy(1, 2)
def test_access_modes_are_kept(comm, tmp_path):
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, MPI.MODE_WRONLY | MPI.MODE_CREATE)
    file.Write_ordered(b"ab")
    assert error_of(file.Read, bytearray(1)).Get_error_class() == MPI.ERR_ACCESS
    file.Close()
    file = MPI.File.Open(comm, path)
    assert error_of(file.Write, b"x").Get_error_class() == MPI.ERR_READ_ONLY
    assert error_of(file.Set_size, 0).Get_error_class() == MPI.ERR_READ_ONLY
    file.Close()
    file = MPI.File.Open(comm, path, MPI.MODE_WRONLY | MPI.MODE_SEQUENTIAL | MPI.MODE_APPEND)
    for refused in (lambda: file.Write(b"x"), lambda: file.Write_at(0, b"x"), lambda: file.Seek(0), lambda: file.Set_view()):
        assert error_of(refused).Get_error_class() == MPI.ERR_UNSUPPORTED_OPERATION
    file.Write_ordered(b"cd")
    file.Close()
    comm.Barrier()
    with open(path, "rb") as source:
        assert source.read() == b"ab" * comm.size + b"cd" * comm.size


@pytest.mark.ompy(1, 2)
def test_a_closed_file_is_null_for_every_handle(comm, tmp_path):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE | MPI.MODE_DELETE_ON_CLOSE)
    other = MPI.File(file)
    assert other == file
    file.Close()
    assert file == MPI.FILE_NULL
    assert not file
    assert error_of(other.Get_size).Get_error_class() == MPI.ERR_FILE
    assert error_of(MPI.FILE_NULL.Read, bytearray(1)).Get_error_class() == MPI.ERR_FILE
    comm.Barrier()
    assert not os.path.exists(path_of(comm, tmp_path))


@pytest.mark.ompy(2)
def test_errors_go_through_the_file_s_handler(comm, tmp_path):
    seen = []
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    handler = MPI.File.Create_errhandler(lambda it, code: seen.append((it == file, code)))
    file.Set_errhandler(handler)
    error_of(file.Read_at, -1, bytearray(1))
    assert seen == [(True, MPI.ERR_ARG)]
    handler.Free()
    file.Close()


@pytest.mark.ompy(1, 2)
def test_hints_in_force_and_where_they_come_from(comm, tmp_path):
    info = MPI.Info.Create({"cb_buffer_size": "65536", "cb_nodes": "many", "no_hint_at_all": "1"})
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE, info)
    shown = file.Get_info()
    assert shown["cb_buffer_size"] == "65536"
    assert shown["ompy_source_of_cb_buffer_size"] == "info of Open"
    assert shown["ompy_source_of_cb_nodes"] == "default"
    assert "no_hint_at_all" not in shown
    file.Set_info(MPI.Info.Create({"romio_ds_read": "disable"}))
    assert file.info["romio_ds_read"] == "disable"
    assert file.info["ompy_source_of_romio_ds_read"] == "Set_info"
    file.Close()


@pytest.mark.ompy(1)
def test_views_that_can_t_be_are_refused(comm, tmp_path):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    for disp, etype, filetype, wanted in (
        (-1, MPI.INT, MPI.INT, MPI.ERR_ARG),
        (0, MPI.INT, MPI.SHORT, MPI.ERR_TYPE),
        (0, MPI.INT, MPI.INT.Create_indexed([1, 1], [3, 0]).Commit(), MPI.ERR_TYPE),
        (0, MPI.INT, MPI.INT.Create_indexed([1], [-1]).Commit(), MPI.ERR_TYPE),
        (0, MPI.INT, MPI.INT.Create_contiguous(0).Commit(), MPI.ERR_TYPE),
        (0, MPI.INT, MPI.INT.Create_contiguous(3).Create_resized(0, 4).Commit(), MPI.ERR_TYPE),
    ):
        assert error_of(file.Set_view, disp, etype, filetype).Get_error_class() == wanted
    assert error_of(file.Set_view, 0, MPI.INT, MPI.INT, "no such").Get_error_class() == MPI.ERR_UNSUPPORTED_DATAREP
    file.Set_view(0, MPI.INT)
    assert error_of(file.Write, bytes(6)).Get_error_class() == MPI.ERR_IO
    file.Close()


@pytest.mark.ompy(1)
def test_external32_is_big_endian_with_its_own_sizes(comm, tmp_path):
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE)
    file.Set_view(0, MPI.LONG, MPI.LONG.Create_vector(2, 1, 2).Commit(), "external32")
    assert file.Get_type_extent(MPI.LONG) == 4
    assert file.Get_view()[3] == "external32"
    status = MPI.Status()
    file.Write([np.array([1, -2, 3]), MPI.LONG], status)
    assert status.Get_count(MPI.LONG) == 3
    with open(path, "rb") as source:
        assert struct.unpack(">4i", source.read()) == (1, 0, -2, 3)
    got = np.zeros(5, "l")
    file.Seek(0)
    file.Iread([got, MPI.LONG]).Wait(status)
    assert status.Get_count(MPI.LONG) == 3
    assert got.tolist() == [1, -2, 3, 0, 0]
    file.Close()


@pytest.mark.ompy(1)
def test_a_representation_of_the_program_s_own(comm, tmp_path):
    def write(memory, datatype, count, data, position):
        data[:] = bytes(255 - byte for byte in memory.tobytes())

    def read(memory, datatype, count, data, position):
        memory[:] = bytes(255 - byte for byte in bytes(data)[: len(memory)])

    MPI.Register_datarep("inverse", read, write, lambda datatype: datatype.extent)
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE)
    file.Set_view(0, MPI.BYTE, MPI.BYTE, "inverse")
    file.Write(b"\0\1")
    with open(path, "rb") as source:
        assert source.read() == b"\xff\xfe"
    got = bytearray(2)
    file.Read_at(0, got)
    assert got == b"\0\1"
    file.Close()


@pytest.mark.ompy(1)
def test_a_representation_without_functions_leaves_data_as_they_are(comm, tmp_path):
    MPI.Register_datarep("as they are", None, None, lambda datatype: datatype.size)
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE)
    file.Set_view(0, MPI.INT, MPI.INT, "as they are")
    every_third = MPI.INT.Create_vector(10, 1, 3).Commit()
    data, got, status = np.arange(30, dtype="i4"), np.full(30, -1, "i4"), MPI.Status()
    file.Write_at(0, [data, 1, every_third])
    assert (np.fromfile(path, "i4") == data[::3]).all()
    file.Read_at(2, [got, 1, every_third], status)
    assert status.Get_count(MPI.INT) == 8
    assert (got[:24:3] == data[6::3]).all()
    assert (got == -1).sum() == 22
    file.Close()


@pytest.mark.ompy(2)
def test_split_collectives_come_one_at_a_time(comm, tmp_path):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    data = np.full(4, comm.rank, "i4")
    file.Write_at_all_begin(16 * comm.rank, data)
    assert error_of(file.Write_all_begin, data).Get_error_class() == MPI.ERR_OTHER
    assert error_of(file.Read_all_end, data).Get_error_class() == MPI.ERR_OTHER
    file.Write_at_all_end(data)
    file.Close()


@pytest.mark.ompy(2)
def test_a_split_collective_whose_end_a_signal_handler_ends_is_ended_by_the_next_one(comm, tmp_path):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE, MPI.Info.Create({"romio_cb_write": "enable"}))
    file.Set_view(comm.rank, MPI.BYTE, MPI.BYTE.Create_resized(0, 2).Commit())
    data, status = np.full(100, comm.rank, "u1"), MPI.Status()
    if comm.rank == 0:
        file.Write_all_begin(data)
        until_late(lambda: file.Write_all_end(data))
        assert error_of(file.Write_all_begin, data).Get_error_class() == MPI.ERR_OTHER
    comm.Barrier()
    if comm.rank == 1:
        file.Write_all_begin(data)
    file.Write_all_end(data, status)
    assert status.Get_count(MPI.BYTE) == 100
    assert error_of(file.Write_all_end, data).Get_error_class() == MPI.ERR_OTHER
    file.Read_at_all_begin(0, data)
    file.Read_at_all_end(data)
    file.Close()


@pytest.mark.ompy(1, mca={"sharedfp": "lockedfile"})
def test_a_signal_handler_is_told_that_its_thread_is_in_the_middle_of_an_access(comm, tmp_path):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    file.Set_atomicity(True)
    (hidden,) = tmp_path.glob(".data.*.sharedfp")
    heard = []
    for call, held in ((lambda: file.Write_at(0, b"x"), tmp_path / "data"), (file.Get_position_shared, hidden)):
        with open(held, "r+b") as other:
            # F_OFD_SETLK: the lock is the open file's
            fcntl.fcntl(other, 37, struct.pack("hhxxxxqqixxxx", fcntl.F_WRLCK, os.SEEK_SET, 0, 8, 0))

            def handle(*_, call=call, other=other):
                heard.append(error_of(call))
                fcntl.fcntl(other, 37, struct.pack("hhxxxxqqixxxx", fcntl.F_UNLCK, os.SEEK_SET, 0, 8, 0))

            signal.signal(signal.SIGALRM, handle)
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            call()
    assert ["signal handler" in str(error) for error in heard] == [True, True]
    file.Close()


@pytest.mark.ompy(2)
def test_a_sequential_view_begins_behind_what_every_rank_wrote_before_it(comm, tmp_path):
    """Rank 1 writes when rank 0 is in Set_view."""
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, MPI.MODE_WRONLY | MPI.MODE_SEQUENTIAL | MPI.MODE_CREATE)
    told = []
    signal.signal(signal.SIGUSR1, lambda *_: told.append(True))
    other = comm.bcast(os.getpid(), 1)
    if comm.rank == 0:
        signal.signal(signal.SIGALRM, lambda *_: os.kill(other, signal.SIGUSR1))
        signal.setitimer(signal.ITIMER_REAL, 0.1)
    else:
        while not told:
            pass
    file.Write_shared(b"ab"[comm.rank : comm.rank + 1])
    file.Set_view(MPI.DISPLACEMENT_CURRENT)
    assert file.Get_view()[0] == 2
    file.Write_ordered(b"AB"[comm.rank : comm.rank + 1])
    file.Close()
    with open(path, "rb") as written:
        assert sorted(written.read(2)) == sorted(b"ab")
        assert written.read() == b"AB"


@pytest.mark.ompy(3)
def test_what_is_agreed_on_beside_a_collective_access_under_way_is_not_taken_for_a_part_of_it(comm, tmp_path, ompy_rng):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE, MPI.Info.Create({"romio_cb_write": "enable"}))
    file.Set_view(4 * comm.rank, MPI.INT, MPI.INT.Create_vector(200, 1, comm.size).Create_resized(0, 800 * comm.size).Commit())
    data, got = np.full(200, comm.rank, "i4"), np.zeros(800, "i4")
    for turn in range(200):
        requests = [file.Iwrite_at_all(200 * part, data) for part in range(4)]
        for _ in range(ompy_rng.randrange(3)):
            comm.Iprobe()
        if turn % 3 == 0:
            file.Set_info(MPI.Info.Create({"cb_nodes": str(1 + turn % 2)}))
        elif turn % 3 == 1:
            file.Seek_shared(turn)
            assert file.Get_position_shared() == turn
        else:
            file.Read_ordered_begin(np.zeros(1, "i4"))
            file.Read_ordered_end(None)
        MPI.Request.Waitall(requests)
    file.Read_at_all(0, got)
    assert (got == comm.rank).all()
    file.Close()


@pytest.mark.ompy(1)
def test_no_pointer_goes_farther_than_a_file_can_reach(comm, tmp_path):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    for seek, tell, write in (
        (file.Seek, file.Get_position, file.Write),
        (file.Seek_shared, file.Get_position_shared, file.Write_shared),
        (file.Seek_shared, file.Get_position_shared, file.Write_ordered),
    ):
        seek(7)
        assert error_of(seek, 2**63 - 1).Get_error_class() == MPI.ERR_ARG
        assert error_of(seek, 2**63 - 7, MPI.SEEK_CUR).Get_error_class() == MPI.ERR_ARG
        assert tell() == 7
        seek(2**62 - 1)
        for _ in range(2):
            assert error_of(write, b"abcd").Get_error_class() == MPI.ERR_ARG
            assert tell() >= 2**62 - 1
    file.Seek(2**62 - 1)
    assert error_of(file.Write, b"abcd").Get_error_class() == MPI.ERR_ARG
    assert file.Get_position() == 2**62 - 1
    file.Close()


@pytest.mark.ompy(2, mca={"sharedfp": "lockedfile"})
def test_who_looks_at_a_shared_pointer_in_a_file_lets_nobody_in(comm, tmp_path):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    looks, over = threading.Event(), threading.Event()

    def look():
        while not over.is_set():
            file.Get_position_shared()
            looks.set()

    looking = threading.Thread(target=look)
    looking.start()
    looks.wait()
    for _ in range(1500):
        file.Write_shared(b"x")
    over.set()
    looking.join()
    comm.Barrier()
    assert file.Get_position_shared() == file.Get_size() == 3000
    file.Close()


@pytest.mark.ompy(1, 2)
def test_pointers_begin_at_the_start_of_what_is_there_or_behind_it_where_that_is_asked_for(comm, tmp_path):
    path = path_of(comm, tmp_path)
    if comm.rank == 0:
        with open(path, "wb") as stream:
            stream.write(b"ten bytes.")
    comm.Barrier()
    for mode, place in ((READ_WRITE, 0), (READ_WRITE | MPI.MODE_APPEND, 10)):
        file = MPI.File.Open(comm, path, mode)
        assert (file.Get_position(), file.Get_position_shared()) == (place, place)
        file.Close()


@pytest.mark.ompy(2, mca={"sharedfp": "lockedfile"})
def test_a_file_that_each_rank_has_alone_leaves_nothing_hidden(comm, tmp_path):
    path = f"{path_of(comm, tmp_path)}{comm.rank}"
    file = MPI.File.Open(MPI.COMM_SELF, path, READ_WRITE)
    file.Write_shared(b"alone")
    file.Close()
    folder, name = os.path.split(path)
    assert [it for it in os.listdir(folder) if name in it] == [name]


@pytest.mark.ompy(2, mca={"sharedfp": "lockedfile"})
def test_no_hidden_file_stays_where_another_rank_can_t_open_it(comm, tmp_path, monkeypatch):
    path, kernel_open = path_of(comm, tmp_path), os.open

    def refusing(name, *arguments):
        if str(name).endswith(".sharedfp") and comm.rank == 1:
            raise PermissionError(13, "it is rank 0's")
        return kernel_open(name, *arguments)

    monkeypatch.setattr(os, "open", refusing)
    file = MPI.File.Open(comm, path, READ_WRITE)
    assert error_of(file.Get_position_shared).Get_error_class() == MPI.ERR_ACCESS
    comm.Barrier()
    assert os.listdir(os.path.dirname(path)) == ["data"]
    file.Close()


@pytest.mark.ompy(1, mca={"sharedfp": "lockedfile"})
def test_a_hidden_file_that_somebody_has_removed_is_missed(comm, tmp_path):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    (hidden,) = tmp_path.glob(".data.*.sharedfp")
    hidden.unlink()
    error = error_of(file.Close)
    assert error.Get_error_class() == MPI.ERR_NO_SUCH_FILE
    assert str(hidden) in str(error)


@pytest.mark.ompy(2)
def test_sync_has_the_kernel_bring_every_rank_s_bytes_to_the_device(comm, tmp_path, monkeypatch):
    file, asked = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE), []
    monkeypatch.setattr(os, "fsync", asked.append)
    file.Sync()
    assert len(asked) == 1
    file.Close()


@pytest.mark.ompy(1, mca={"sharedfp": "lockedfile"})
def test_an_exception_of_a_signal_handler_leaves_no_lock_of_a_shared_pointer_in_a_file(comm, tmp_path, ompy_rng):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    (hidden,) = tmp_path.glob(".data.*.sharedfp")
    ask = struct.pack("hhxxxxqqixxxx", fcntl.F_WRLCK, os.SEEK_SET, 0, 8, 0)

    def handle(*_):
        if armed:
            raise Late

    signal.signal(signal.SIGALRM, handle)
    with open(hidden, "r+b") as other:
        for _ in range(3000):
            armed = True
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 1e-6 * ompy_rng.randrange(1, 30))
                    file.Get_position_shared()
                finally:
                    armed = False
            except Late:
                armed = False
            fcntl.fcntl(other, 37, ask)  # F_OFD_SETLK: an error where it is locked
            fcntl.fcntl(other, 37, struct.pack("hhxxxxqqixxxx", fcntl.F_UNLCK, os.SEEK_SET, 0, 8, 0))
    file.Close()


@pytest.mark.ompy(1)
def test_an_atomic_read_of_pieces_that_go_back_waits_for_who_has_one_of_them(comm, tmp_path):
    path = path_of(comm, tmp_path)
    with open(path, "w+b") as data:
        data.write(bytes(range(200)))
        data.flush()
        file = MPI.File.Open(comm, path, MPI.MODE_RDONLY)
        file.Set_view(0, MPI.BYTE, MPI.BYTE.Create_hindexed([4, 4, 4], [100, 50, 0]).Commit())
        file.Set_atomicity(True)
        got = bytearray(12)
        for place in (0, 50, 100):
            mine = struct.pack("hhxxxxqqixxxx", fcntl.F_WRLCK, os.SEEK_SET, place, 4, 0)
            fcntl.fcntl(data, 37, mine)  # F_OFD_SETLK: the lock is the open file's
            until_late(lambda: file.Read_at(0, got))
            fcntl.fcntl(data, 37, struct.pack("hhxxxxqqixxxx", fcntl.F_UNLCK, os.SEEK_SET, place, 4, 0))
        file.Read_at(0, got)
        assert list(got) == [*range(100, 104), *range(50, 54), *range(4)]
        file.Close()


@pytest.mark.ompy(1)
def test_a_view_of_a_billion_pieces_costs_no_memory(comm, tmp_path):
    resource = pytest.importorskip("resource")
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    file.Set_view(0, MPI.BYTE, MPI.BYTE.Create_vector(10**9, 1, 3).Commit())
    assert file.Get_byte_offset(10**9 - 1) == 3 * (10**9 - 1)
    file.Write_at(7 * 10**8, b"abc")
    got = bytearray(3)
    file.Read_at(7 * 10**8, got)
    assert got == b"abc"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20000
    file.Close()


@pytest.mark.ompy(1)
def test_offsets_beyond_two_to_the_fortieth(comm, tmp_path):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    far = (1 << 43) + 5
    file.Write_at(far, b"far")
    assert file.Get_size() == far + 3
    got, status = bytearray(8), MPI.Status()
    file.Read_at(far - 2, got, status)
    assert status.Get_count(MPI.BYTE) == 5
    assert got[:5] == b"\0\0far"
    assert error_of(file.Write_at, (1 << 62) + 1, b"x").Get_error_class() == MPI.ERR_ARG
    file.Close()


@pytest.mark.ompy(2)
def test_a_full_device_is_an_error_on_every_rank(comm, tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    file = MPI.File.Open(comm, "/dev/full", MPI.MODE_RDWR, MPI.Info.Create({"romio_cb_write": "enable"}))
    error = error_of(file.Write_at, 0, b"x")
    assert error.Get_error_class() == MPI.ERR_NO_SPACE
    assert "/dev/full" in str(error)
    file.Set_view(0, MPI.INT, MPI.INT.Create_hindexed([1], [4 * comm.rank]).Create_resized(0, 8).Commit())
    error = error_of(file.Write_all, np.arange(1000, dtype="i4"))
    assert error.Get_error_class() == MPI.ERR_NO_SPACE
    assert "/dev/full" in str(error)
    file.Close()


@pytest.mark.ompy(2)
def test_arguments_that_differ_are_errors_on_every_rank(comm, tmp_path):
    path = path_of(comm, tmp_path)
    first = comm.rank == 0
    error = error_of(MPI.File.Open, comm, path, READ_WRITE if first else MPI.MODE_RDONLY | MPI.MODE_CREATE)
    assert error.Get_error_class() == MPI.ERR_AMODE
    error_of(MPI.File.Open, comm, path if first else "", READ_WRITE)
    file = MPI.File.Open(comm, path, READ_WRITE)
    for wrong in (
        lambda: file.Set_size(10 if first else -1),
        lambda: file.Preallocate(10 if first else -1),
        lambda: file.Set_view(0 if first else -1),
        lambda: file.Set_view(0, MPI.BYTE if first else MPI.INT),
        lambda: file.Set_view(0, MPI.INT, MPI.INT, "native" if first else "no such"),
        lambda: file.Seek_shared(0 if first else -1),
        lambda: file.Set_atomicity(first),
    ):
        error_of(wrong)
    file.Write_ordered(b"ab")
    comm.Barrier()
    assert file.Get_size() == 4
    file.Close()


@pytest.mark.ompy(2, 3)
def test_hints_that_differ_are_rank_0_s(comm, tmp_path):
    first = comm.rank == 0
    for name, words in (
        ("romio_cb_write", ("enable", "disable")),
        ("romio_cb_read", ("enable", "disable")),
        ("romio_ds_write", ("enable", "automatic")),
        ("cb_buffer_size", ("4096", "65536")),
        ("cb_nodes", ("1", "0")),
    ):
        info = MPI.Info.Create({name: words[0]} if first else {name: words[1]} if comm.rank == 1 else {})
        file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE, info)
        assert file.info[name] == words[0]
        assert file.info[f"ompy_source_of_{name}"] == ("info of Open" if first else "info of Open of rank 0")
        file.Set_view(
            0, MPI.INT, MPI.INT.Create_hindexed([1], [4 * comm.rank]).Create_resized(0, 4 * comm.size).Commit(), "native", info
        )
        data, got = np.arange(5000, dtype="i4") + comm.rank, np.zeros(5000, "i4")
        file.Write_all(data)
        file.Read_at_all(0, got)
        assert (got == data).all()
        file.Close()


@pytest.mark.ompy(2, 4, mca={"fcoll_two_phase_exchange": "messages"})
def test_hints_that_give_one_rank_more_to_move_give_it_the_memory(comm, tmp_path):
    pieces = 1 << 16
    size = comm.size * 4 * pieces
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    mine = MPI.INT.Create_hindexed([1], [4 * comm.rank]).Create_resized(0, 4 * comm.size).Commit()
    data, got = np.arange(pieces, dtype="i4") * comm.size + comm.rank, np.zeros(pieces, "i4")
    # The same bytes of the file at a time: of all movers, then of fewer and fewer.
    for movers in range(comm.size, 0, -1):
        info = MPI.Info.Create({"romio_cb_write": "enable", "romio_cb_read": "enable"})
        info.update({"cb_nodes": str(movers), "cb_buffer_size": str(size // movers)})
        file.Set_view(0, MPI.INT, mine, "native", info)
        file.Write_all(data)
        file.Read_at_all(0, got)
        assert (got == data).all()
    file.Close()


@pytest.mark.ompy(2)
def test_a_collective_access_of_plain_views_waits_for_nobody(comm, tmp_path):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    file.Set_view(4, MPI.INT)
    mine, got = np.full(10, comm.rank, "i4"), np.zeros(20, "i4")
    for call, buf in ((file.Write_at_all, mine), (file.Read_at_all, mine)):
        if comm.rank:
            comm.recv(source=0)
        call(10 * comm.rank, buf)
        if comm.rank == 0:
            comm.send(None, 1)
    comm.Barrier()
    file.Read_at_all(0, got)
    assert (got == np.repeat([0, 1], 10)).all()
    file.Close()


@pytest.mark.ompy(2, 4)
def test_what_ranks_move_together_goes_between_file_and_memory_once(comm, tmp_path):
    moves_once(comm, tmp_path)


@pytest.mark.ompy(2, 4, mca={"fcoll_two_phase_exchange": "messages"})
def test_what_ranks_move_together_by_messages_goes_between_file_and_memory_once(comm, tmp_path):
    moves_once(comm, tmp_path)


def moves_once(comm, tmp_path):
    from ompy import tool

    size, data = 1 << 20, np.full(1 << 18, comm.rank, "i4")
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    file.Set_view(0, MPI.INT, MPI.INT.Create_hindexed([1], [4 * comm.rank]).Create_resized(0, 4 * comm.size).Commit())
    with tool.Session() as session:
        handles = [session.handle(f"fbtl_posix_{name}") for name in ("bytes_written", "bytes_read", "calls")]
        session.start()
        file.Write_all(data)
        file.Read_at_all(0, data)
        session.stop()
        written, read, calls = (comm.allreduce(handle.read()) for handle in handles)
    assert (written, read) == (size * comm.size, size * comm.size)
    assert calls == 2 * comm.size
    assert (data == comm.rank).all()
    file.Close()


@pytest.mark.ompy(1, 2)
@pytest.mark.parametrize("lengths", ["2047", "2048", "4096", "4096 1", "any"])
def test_pieces_of_every_length_are_read_to_the_end_of_the_file_and_not_beyond(comm, tmp_path, lengths):
    dice = np.random.default_rng(len(lengths))
    choice = [1, 511, 2047, 2048, 4096, 8192, 65535, 65536] if lengths == "any" else [int(each) for each in lengths.split()]
    count = 100 if lengths == "any" else 1200
    pieces = dice.choice(choice, count) if lengths == "any" else np.resize(choice, count)
    gaps = dice.choice([0, 1, 4095, 4096], count)
    begins = np.cumsum(pieces + gaps) - pieces
    extent = int(begins[-1] + pieces[-1]) + 5
    places = np.concatenate([np.arange(begin, begin + length) for begin, length in zip(begins, pieces, strict=True)])
    whole = dice.integers(0, 255, 2 * extent, np.uint8)
    path = path_of(comm, tmp_path)
    if comm.rank == 0:
        whole.tofile(path)
    comm.Barrier()
    file = MPI.File.Open(comm, path, MPI.MODE_RDWR)
    file.Set_view(0, MPI.BYTE, MPI.BYTE.Create_hindexed(pieces.tolist(), begins.tolist()).Create_resized(0, extent).Commit())
    some = int(begins[count // 2])
    status = MPI.Status()
    for end in (2 * extent, extent + some + 1, extent + some, some + int(pieces[count // 2]) + 1, int(begins[0])):
        file.Set_size(end)
        places_there = np.concatenate([places, extent + places])
        for first in (0, 1, 3 * len(places) // 4):
            there = places_there[first:]
            expected = whole[there[there < end]]
            for read in (file.Read_at, file.Read_at_all):
                got = np.full(len(there), 255, np.uint8)
                read(first, got, status)
                assert status.Get_count(MPI.BYTE) == len(expected)
                assert (got[: len(expected)] == expected).all()
                assert (got[len(expected) :] == 255).all()
        comm.Barrier()
    file.Close()


@pytest.mark.ompy(1)
def test_elements_of_no_bytes_are_read_from_a_portable_file(comm, tmp_path):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    file.Set_view(0, MPI.INT, MPI.INT, "external32")
    nothing = MPI.INT.Create_contiguous(0).Commit()
    file.Read_at(0, [bytearray(8), 2, nothing])
    file.Read_at(0, [bytearray(8), 0, nothing])
    file.Close()


@pytest.mark.ompy(2, mca={"sharedfp": "lockedfile"})
def test_a_file_that_is_deleted_on_close_is_the_one_that_was_opened(comm, tmp_path):
    folder = comm.bcast(str(tmp_path))
    before = os.getcwd()
    if comm.rank == 0:
        os.mkdir(os.path.join(folder, "elsewhere"))
        open(os.path.join(folder, "elsewhere", "data"), "w").close()
    comm.Barrier()
    try:
        os.chdir(folder)
        file = MPI.File.Open(comm, "data", READ_WRITE | MPI.MODE_DELETE_ON_CLOSE)
        os.chdir("elsewhere")
        file.Close()
    finally:
        os.chdir(before)
    assert os.listdir(folder) == ["elsewhere"]
    assert os.listdir(os.path.join(folder, "elsewhere")) == ["data"]


@pytest.mark.ompy(1)
def test_an_access_that_goes_on_by_itself_is_carried_out_though_a_signal_handler_raises(comm, tmp_path):
    path = path_of(comm, tmp_path)
    interrupted = 0
    for delay in np.linspace(1e-6, 4e-4, 150):
        file = MPI.File.Open(comm, path, READ_WRITE)
        signal.signal(signal.SIGALRM, raise_late)
        try:
            signal.setitimer(signal.ITIMER_REAL, delay)
            file.Iwrite_at_all(0, bytearray(8))
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_IGN)  # another thread may be about to take it
        except Late:
            interrupted += 1
        file.Sync()
        file.Close()
    print(f"interrupted {interrupted} times")


@pytest.mark.ompy(1)
def test_accesses_that_threads_begin_at_once_are_carried_out_once_each(comm, tmp_path):
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    problems = []

    def write(place):
        try:
            for value in range(500):
                file.Iwrite_at(8 * place, np.full(1, value)).Wait()
        except MPI.Exception as problem:
            problems.append(problem)

    try:
        threads = [threading.Thread(target=write, args=(place,)) for place in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    file.Close()
    assert not problems


@pytest.mark.ompy(1)
@pytest.mark.parametrize("hint", ["cb_buffer_size", "ind_rd_buffer_size", "ind_wr_buffer_size"])
def test_a_hint_that_no_memory_could_hold_is_passed_over(comm, tmp_path, hint):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE, MPI.Info.Create({hint: str(10**30)}))
    assert int(file.Get_info().Get(hint)) <= 1 << 30
    file.Set_view(0, MPI.INT, MPI.INT.Create_vector(4, 1, 2).Commit())
    file.Write_at_all(0, np.arange(4, dtype="i4"))
    file.Read_at(0, np.zeros(4, "i4"))
    file.Close()


@pytest.mark.ompy(1)
def test_an_offset_beyond_what_bytes_can_count_is_an_error_of_mpi(comm, tmp_path):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    file.Set_view(0, MPI.DOUBLE, MPI.DOUBLE)
    assert error_of(file.Get_byte_offset, 1 << 60).Get_error_class() == MPI.ERR_ARG
    file.Close()


@pytest.mark.ompy(2)
def test_a_closed_file_leaves_no_thread(comm, tmp_path):
    path = path_of(comm, tmp_path)
    before = Lane.threads
    spin = threading.Event()
    busy = threading.Thread(target=lambda: [None for _ in iter(spin.is_set, True)])  # which takes the turns of one that ends
    busy.start()
    try:
        for _ in range(50):
            file = MPI.File.Open(comm, path, READ_WRITE)
            file.Iwrite_at_all(8 * comm.rank, bytearray(8)).Wait()
            file.Close()
            assert Lane.threads == before
    finally:
        spin.set()
        busy.join()


@pytest.mark.ompy(2)
def test_who_is_interrupted_in_closing_a_file_closes_it_with_the_others(comm, tmp_path, monkeypatch):
    end = Lane.close

    def interrupted(lane):
        end(lane)
        if comm.rank == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(Lane, "close", interrupted)
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE)
    if comm.rank == 0:
        with pytest.raises(KeyboardInterrupt):
            file.Close()
    else:
        file.Close()
    assert not [link for link in os.scandir("/proc/self/fd") if os.path.realpath(link.path) == path]
    comm.Barrier()


@pytest.mark.ompy(2, mca={"sharedfp": "lockedfile"})
def test_who_appends_begins_at_the_end_that_was_found_at_the_opening(comm, tmp_path, monkeypatch):
    """Rank 1 writes at the shared pointer before rank 0 can look at it."""
    from ompy_sharedfp_lockedfile.module import LockedFile

    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE)
    file.Write_ordered(b"abcde")
    file.Close()
    get = LockedFile.get

    def look(pointer):
        comm.recv(source=1)
        return get(pointer)

    with monkeypatch.context() as patch:
        if comm.rank == 0:
            patch.setattr(LockedFile, "get", look)
        file = MPI.File.Open(comm, path, READ_WRITE | MPI.MODE_APPEND)
    if comm.rank == 1:
        file.Write_shared(b"abc")
        comm.send(None, 0)
    assert file.Get_position() == 10
    if comm.rank == 0:
        comm.recv(source=1)
    assert file.Get_position_shared() == 13
    file.Close()


@pytest.mark.ompy(2, 3)
def test_arguments_that_are_to_be_the_same_and_are_not_are_named_on_every_rank(comm, tmp_path):
    MPI.Register_datarep("one more", None, None, lambda datatype: datatype.size)
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    last = comm.rank == comm.size - 1
    for call, words in (
        (lambda: file.Set_size(100 + last), ("size 100", "size 101")),
        (lambda: file.Preallocate(100 + last), ("size 100", "size 101")),
        (lambda: file.Seek_shared(5 + last), ("offset 5", "offset 6")),
        (lambda: file.Seek_shared(0, MPI.SEEK_END if last else MPI.SEEK_SET), ("whence 600", "whence 604")),
        (lambda: file.Set_view(0, MPI.INT, MPI.INT, "one more" if last else "native"), ("'native'", "'one more'")),
    ):
        error = error_of(call)
        assert error.Get_error_class() == MPI.ERR_NOT_SAME
        assert all(word in str(error) for word in words), str(error)
    assert (file.Get_size(), file.Get_position_shared(), file.Get_view()[3]) == (0, 0, "native")
    file.Close()


@pytest.mark.ompy(1, 2)
def test_the_datatypes_of_a_view_are_committed(comm, tmp_path):
    file = MPI.File.Open(comm, path_of(comm, tmp_path), READ_WRITE)
    kind = MPI.INT.Create_vector(2, 1, 2)
    for etype, filetype, name in ((kind, kind, "etype"), (MPI.INT, kind, "filetype")):
        error = error_of(file.Set_view, 0, etype, filetype)
        assert error.Get_error_class() == MPI.ERR_TYPE
        assert f"{name}: its datatype is not committed" in str(error)
    file.Set_view(0, MPI.INT, kind.Commit())
    file.Close()


@pytest.mark.ompy(1, 2)
def test_no_file_is_opened_over_a_communicator_that_was_freed_through_another_handle(comm, tmp_path):
    freed = comm.Dup()
    other = MPI.Intracomm(freed)
    freed.Free()
    for gone in (other, MPI.COMM_NULL):
        assert error_of(MPI.File.Open, gone, path_of(comm, tmp_path), READ_WRITE).Get_error_class() == MPI.ERR_COMM


@pytest.mark.ompy(2)
def test_a_close_that_fails_has_closed_the_file(comm, tmp_path):
    path = path_of(comm, tmp_path)
    file = MPI.File.Open(comm, path, READ_WRITE | MPI.MODE_DELETE_ON_CLOSE)
    comm.Barrier()
    if comm.rank == 0:
        os.unlink(path)
    assert error_of(file.Close).Get_error_class() == MPI.ERR_NO_SUCH_FILE
    assert not file
    assert file == MPI.FILE_NULL
