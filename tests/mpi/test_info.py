"""Info objects: MPI's methods and a dict's."""

import pickle

import pytest

from ompy import MPI


def test_entries_keep_their_order():
    info = MPI.Info.Create([("b", "1"), ("a", "2")])
    assert info.items() == [("b", "1"), ("a", "2")]
    assert [info.Get_nthkey(n) for n in range(info.Get_nkeys())] == ["b", "a"]
    assert info.popitem() == ("a", "2")
    info.Free()
    assert info == MPI.INFO_NULL


def test_a_duplicate_is_another_object():
    info = MPI.Info.Create({"a": "1"})
    other = info.Dup()
    other["a"] = "2"
    assert info["a"] == "1"
    assert pickle.loads(pickle.dumps(info)).items() == info.items()


@pytest.mark.parametrize(
    ("key", "value", "error_class"),
    [("", "x", "ERR_INFO_KEY"), ("k" * 300, "x", "ERR_INFO_KEY"), ("k", "x" * 5000, "ERR_INFO_VALUE")],
)
def test_what_does_not_fit_is_refused(key, value, error_class):
    info = MPI.Info.Create()
    with pytest.raises(MPI.Exception) as caught:
        info.Set(key, value)
    assert caught.value.Get_error_class() == getattr(MPI, error_class)


def test_the_null_object_reads_as_empty():
    null = MPI.INFO_NULL
    assert (len(null), null.items(), null.get("a")) == (0, [], None)
    with pytest.raises(KeyError):
        null["a"] = "1"
    with pytest.raises(MPI.Exception) as caught:
        null.Get("a")
    assert caught.value.Get_error_class() == MPI.ERR_INFO


def test_the_environment_can_be_read_but_not_freed():
    assert MPI.INFO_ENV.Get("wdir")
    with pytest.raises(MPI.Exception):
        MPI.INFO_ENV.Free()
    assert MPI.Info.Create_env(["prog", "-x"]).Get("argv") == "-x"
