"""Error handlers: what happens when a call fails."""

import pytest

from ompy import MPI


@pytest.fixture
def comm():
    made = MPI.COMM_SELF.Dup()
    yield made
    made.Free()


def test_errors_are_exceptions_by_default(comm):
    assert comm.Get_errhandler() == MPI.ERRORS_RETURN
    with pytest.raises(MPI.Exception):
        comm.Split(-1)


def test_a_function_of_the_program_sees_the_error_first(comm):
    seen = []
    handler = MPI.Comm.Create_errhandler(lambda subject, code: seen.append((subject == comm, code)))
    comm.Set_errhandler(handler)
    handler.Free()
    for call in (lambda: comm.Split(-1), lambda: comm.Bcast(bytearray(1), root=5), lambda: comm.send(None, 7)):
        with pytest.raises(MPI.Exception):
            call()
    assert seen == [(True, MPI.ERR_ARG), (True, MPI.ERR_ROOT), (True, MPI.ERR_RANK)]


def test_handlers_are_inherited(comm):
    handler = MPI.Comm.Create_errhandler(lambda subject, code: None)
    comm.Set_errhandler(handler)
    other = comm.Dup()
    assert other.Get_errhandler() == handler
    other.Free()
    handler.Free()


def test_a_handler_of_another_kind_is_refused(comm):
    handler = MPI.Session.Create_errhandler(lambda subject, code: None)
    with pytest.raises(MPI.Exception, match="made for a Session, not a Comm"):
        comm.Set_errhandler(handler)
    handler.Free()


def test_calling_the_handler_by_hand(comm):
    seen = []
    handler = MPI.Comm.Create_errhandler(lambda subject, code: seen.append(code))
    comm.Set_errhandler(handler)
    comm.Call_errhandler(MPI.ERR_OTHER)
    assert seen == [MPI.ERR_OTHER]
    handler.Free()


def test_the_number_of_handlers_is_bounded():
    handlers = [MPI.Comm.Create_errhandler(lambda subject, code: None) for _ in range(32)]
    with pytest.raises(RuntimeError, match="Free some first"):
        MPI.Comm.Create_errhandler(lambda subject, code: None)
    for handler in handlers:
        handler.Free()
    MPI.Comm.Create_errhandler(lambda subject, code: None).Free()


def test_predefined_handlers_outlive_free():
    for name in ("ERRORS_RETURN", "ERRORS_ARE_FATAL", "ERRORS_ABORT"):
        getattr(MPI, name).Free()
        assert getattr(MPI, name) != MPI.ERRHANDLER_NULL
    copy = MPI.Errhandler(MPI.ERRORS_RETURN)
    copy.Free()
    assert copy == MPI.ERRHANDLER_NULL
