"""Sessions: process sets, and communicators made from them."""

import time

import pytest

from ompy import MPI


@pytest.mark.ompy(1, 3)
def test_a_communicator_from_a_process_set(comm):
    session = MPI.Session.Init()
    names = [session.Get_nth_pset(n) for n in range(session.Get_num_psets())]
    assert {"mpi://WORLD", "mpi://SELF"} <= set(names)
    assert session.Get_pset_info("mpi://WORLD").Get("mpi_size") == str(comm.size)
    group = MPI.Group.Create_from_session_pset(session, "mpi://WORLD")
    made = MPI.Intracomm.Create_from_group(group, "mine", errhandler=MPI.ERRORS_RETURN)
    assert made.allgather(made.rank) == list(range(comm.size))
    made.Free()
    session.Finalize()
    assert session == MPI.SESSION_NULL


def test_an_unknown_process_set_is_named():
    session = MPI.Session.Init()
    with pytest.raises(MPI.Exception, match="mpi://NOWHERE"):
        session.Create_group("mpi://NOWHERE")
    with pytest.raises(MPI.Exception):
        session.Get_nth_pset(99)
    session.Finalize()
    with pytest.raises(MPI.Exception) as caught:
        session.Get_num_psets()
    assert caught.value.Get_error_class() == MPI.ERR_SESSION


def test_a_session_that_was_finalised_through_another_handle_is_an_error():
    session = MPI.Session.Init()
    other = MPI.Session(session)
    session.Finalize()
    for call in (other.Get_num_psets, other.Get_info, lambda: other.Create_group("mpi://SELF"), other.Finalize):
        with pytest.raises(MPI.Exception, match="through another handle") as caught:
            call()
        assert caught.value.Get_error_class() == MPI.ERR_SESSION


@pytest.mark.ompy(2)
def test_buffered_sends_of_what_comes_from_a_session_use_its_buffer(comm):
    """MPI-4.1, 3.6: through groups of its groups, and communicators made from its communicators."""
    session = MPI.Session.Init()
    whole = session.Create_group("mpi://WORLD")
    group = MPI.Group.Union(whole.Incl([0]), whole.Excl([0])).Dup()
    made = MPI.Intracomm.Create_from_group(group, "buffered")
    split = made.Split(0, made.rank)
    again = MPI.Intracomm.Create_from_group(split.Get_group(), "buffered again")
    payload = bytes(1000)
    for used in (made, split, made.Dup(), again):
        if used.rank == 0:
            with pytest.raises(MPI.Exception) as caught:
                used.Bsend(payload, 1)
            assert caught.value.Get_error_class() == MPI.ERR_BUFFER
        session.Attach_buffer(bytearray(len(payload) + MPI.BSEND_OVERHEAD))
        if used.rank == 0:
            used.Bsend(payload, 1)
            with pytest.raises(MPI.Exception):
                comm.Bsend(payload, 1)
        else:
            used.Recv(bytearray(len(payload)), 0)
        session.Detach_buffer()
        used.Barrier()
        used.Free()
    session.Attach_buffer(None)
    session.Finalize()


@pytest.mark.ompy(2)
def test_a_session_ends_when_the_messages_in_its_buffer_have_left(comm):
    """MPI-4.1, 3.6 and 11.3.1."""
    session = MPI.Session.Init()
    made = MPI.Intracomm.Create_from_group(session.Create_group("mpi://WORLD"), "buffered")
    message = bytearray(8 << 20)
    comm.Barrier()
    if comm.rank == 0:
        session.Attach_buffer(bytearray(len(message) + MPI.BSEND_OVERHEAD))
        made.Bsend(message, 1)
        session.Finalize()
        assert comm.iprobe(1, 5), "it has ended before the message was received"
        comm.recv(source=1, tag=5)
    else:
        time.sleep(0.2)  # an end that does not wait is over by then
        comm.send("about to receive", 0, 5)
        made.Recv(message, 0)
        session.Finalize()


@pytest.mark.parametrize(
    ("asked", "kinds"),
    [
        ({}, "mpi,system"),
        ({"mpi_memory_alloc_kinds": "cuda,mpi:alloc_mem"}, "mpi:alloc_mem,mpi,system"),
        ({"mpi_memory_alloc_kinds": "system,mpi:pinned", "thread_level": "MPI_THREAD_SINGLE", "ours": "kept"}, "system,mpi"),
    ],
)
def test_a_session_tells_its_thread_level_and_kinds_of_memory(asked, kinds):
    session = MPI.Session.Init(MPI.Info.Create(asked))
    told = dict(session.Get_info().items())
    assert told == {**asked, "thread_level": "MPI_THREAD_MULTIPLE", "mpi_memory_alloc_kinds": kinds}
    session.Finalize()


def test_objects_tell_the_kinds_of_memory_that_they_take(tmp_path):
    window = MPI.Win.Allocate(8, comm=MPI.COMM_SELF)
    file = MPI.File.Open(MPI.COMM_SELF, str(tmp_path / "file"), MPI.MODE_CREATE | MPI.MODE_RDWR)
    for some in (MPI.COMM_SELF, window, file):
        assert some.Get_info().Get("mpi_memory_alloc_kinds") == "mpi,system"
    window.Free()
    file.Close()
