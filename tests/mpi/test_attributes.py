"""Attributes on communicators: callbacks, copies, predefined keys."""

import pytest

from ompy import MPI
from ompy.testing.conformance.held import leaks


@pytest.fixture
def key():
    made = []

    def make(**functions):
        made.append(MPI.Comm.Create_keyval(**functions))
        return made[-1]

    yield make
    for number in made:
        MPI.Comm.Free_keyval(number)


def test_a_value_comes_back_as_it_is(key):
    comm, number, value = MPI.COMM_SELF.Dup(), key(), [1, 2]
    assert comm.Get_attr(number) is None
    comm.Set_attr(number, value)
    assert comm.Get_attr(number) is value
    comm.Delete_attr(number)
    assert comm.Get_attr(number) is None
    comm.Free()


@pytest.mark.parametrize(
    ("copy", "expected"),
    [(None, None), (False, None), (True, "it"), (lambda c, k, v: v * 2, "itit"), (lambda c, k, v: NotImplemented, None)],
)
def test_a_duplicate_gets_what_the_copy_function_says(key, copy, expected):
    comm, number = MPI.COMM_SELF.Dup(), key(copy_fn=copy)
    comm.Set_attr(number, "it")
    for other in (comm.Dup(), comm.Clone()):
        assert other.Get_attr(number) == expected
        other.Free()
    comm.Free()


def test_freeing_deletes_the_last_value_first(key):
    comm, gone = MPI.COMM_SELF.Dup(), []

    def note(comm, number, value):
        gone.append(value)

    for value in ("first", "second"):
        comm.Set_attr(key(delete_fn=note), value)
    comm.Free()
    assert gone == ["second", "first"]


def test_replacing_deletes_the_old_value(key):
    comm, gone = MPI.COMM_SELF.Dup(), []
    number = key(delete_fn=lambda c, k, v: gone.append(v))
    comm.Set_attr(number, 1)
    comm.Set_attr(number, 2)
    assert gone == [1]
    comm.Free()


def test_a_failing_delete_function_is_shown_and_called_once(key, capsys):
    def fail(comm, number, value):
        raise ValueError("no")

    comm, number = MPI.COMM_SELF.Dup(), key(delete_fn=fail)
    comm.Set_attr(number, 1)
    with pytest.raises(MPI.Exception, match="fail raised ValueError: no") as caught:
        comm.Delete_attr(number)
    assert caught.value.Get_error_class() == MPI.ERR_OTHER
    assert "ValueError" in capsys.readouterr().err
    comm.Free()


def test_values_outlive_their_key():
    comm, gone = MPI.COMM_SELF.Dup(), []
    number = MPI.Comm.Create_keyval(delete_fn=lambda c, k, v: gone.append(v))
    comm.Set_attr(number, 7)
    assert MPI.Comm.Free_keyval(number) == MPI.KEYVAL_INVALID
    comm.Free()
    assert gone == [7]


def test_an_unknown_key_is_refused():
    with pytest.raises(MPI.Exception, match="123456 is no key") as caught:
        MPI.COMM_WORLD.Get_attr(123456)
    assert caught.value.Get_error_class() == MPI.ERR_KEYVAL


def test_the_librarys_own_keys_have_values():
    comm = MPI.COMM_WORLD
    assert comm.Get_attr(MPI.TAG_UB) >= 32767
    assert comm.Get_attr(MPI.HOST) == MPI.PROC_NULL
    assert comm.Get_attr(MPI.IO) == MPI.ANY_SOURCE
    assert comm.Get_attr(MPI.WTIME_IS_GLOBAL) in (0, 1)
    assert comm.Get_attr(MPI.UNIVERSE_SIZE) >= comm.size
    assert comm.Get_attr(MPI.LASTUSEDCODE) >= MPI.ERR_LASTCODE


@pytest.mark.parametrize("duplicate", [lambda comm: comm.Dup(), lambda comm: comm.Idup()], ids=["Dup", "Idup"])
def test_a_copy_function_that_fails_leaves_no_communicator_behind(key, capfd, duplicate):
    def fail(comm, key, value):
        raise LookupError("not this one")

    comm, number = MPI.COMM_SELF.Dup(), key(copy_fn=fail)
    comm.Set_attr(number, "it")

    def try_it():
        with pytest.raises(MPI.Exception, match="not this one"):
            duplicate(comm)

    assert leaks(try_it, 100) == ""
    comm.Free()
