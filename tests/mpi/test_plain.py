"""Plain objects are pickled by a loop of our own: what any `loads` makes of it, and what is left to pickle."""

from __future__ import annotations

import io
import math
import pickle
import pickletools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ompy.mpi.plain import plain_pickle

ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**33), 2**33),
    st.floats(),
    st.text(max_size=300),
    st.binary(max_size=300),
)
OBJECTS = st.recursive(
    ATOMS,
    lambda parts: st.one_of(
        st.lists(parts, max_size=5),
        st.lists(parts, max_size=5).map(tuple),
        st.dictionaries(st.text(max_size=5), parts, max_size=5),
        st.dictionaries(st.integers() | st.tuples(st.integers(), st.text(max_size=3)), parts, max_size=3),
    ),
    max_leaves=60,
)


def same(one: Any, other: Any) -> bool:
    """Equal, of the same types throughout, signs of zeros and NaNs included."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return one.hex() == other.hex() or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one.items(), other.items(), strict=True))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    return bool(one == other)


@settings(max_examples=500, deadline=None)
@given(OBJECTS)
def test_any_loads_makes_the_same_object(obj: Any) -> None:
    data = plain_pickle(obj)
    if data is not None:
        pickletools.dis(data, out=io.StringIO())
        assert same(pickle.loads(data), obj)
        assert same(pickle._loads(data), obj)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "obj",
    [None, True, 0, 255, 256, 65535, 65536, -1, 2**31 - 1, -(2**31), -0.0, math.inf, "", "a" * 255, "a" * 256, b"", b"b" * 255]
    + [
        b"b" * 256,
        (),
        (1,),
        (1, 2),
        (1, 2, 3),
        (1, 2, 3, 4),
        [],
        [1],
        [1, 2],
        {},
        {1: 2},
        {"a": 1, "b": [1.0, 2.0], "c": "text"},
    ]
    + [[[[]]], {"": {(1, "x"): [None]}}],
)
def test_these_are_plain(obj: Any) -> None:
    data = plain_pickle(obj)
    assert data is not None
    assert same(pickle.loads(data), obj)


class Text(str):
    pass


class Items(list[int]):
    pass


def test_what_is_not_plain_is_left_to_pickle() -> None:
    twice = [1]
    around: list[Any] = []
    around.append(around)
    long = [1.0] * 300
    deep: list[Any] = []
    for _ in range(40):
        deep = [deep]
    others = [2**31, -(2**31) - 1, 1j, "é", "\ud800", Text("a"), Items(), {1}, bytearray(1), np.float64(1), np.ones(3), int]
    for obj in (*others, [twice, twice], {"a": (1,), "b": [around]}, around, long, "a" * 3000, b"b" * 3000, deep):
        assert plain_pickle(obj) is None
        assert plain_pickle([1, {"a": obj}]) is None


def test_every_length_up_to_the_room_and_beyond() -> None:
    """The end of the room is where a container still has to be ended."""
    for length in range(1900, 2100):
        for obj in ("x" * length, ["x" * length, [[[1.0, (2, 3, 4, 5)]]]], [b"x" * (length - 500), *range(200, 330)]):
            data = plain_pickle(obj)
            assert data is None or (len(data) <= 2048 and pickle.loads(data) == obj)
    assert plain_pickle("x" * 1900) is not None


@pytest.mark.ompy(2)
def test_plain_and_other_objects_arrive_alike(comm):
    import numpy as np

    other = 1 - comm.rank
    nested = {"a": 1, "b": [1.0, 2.0], "c": "text", "d": None, "e": (True, b"x")}
    shared = [1, 2]
    objects = [None, 7, 2**40, "text", "t\u00e9xt", nested, [shared, shared], [nested, np.arange(3)], list(range(5000))]
    for obj in objects:
        for send in (comm.send, comm.ssend, lambda what, dest: comm.isend(what, dest).wait()):
            request = comm.irecv(source=other)
            send(obj, other)
            got = request.wait()
            assert type(got) is type(obj)
            assert str(got) == str(obj)
    got = comm.sendrecv([shared, shared], other, source=other)
    assert got[0] is got[1]


@pytest.mark.ompy(1)
def test_the_programs_own_dumps_is_asked(comm):
    import pickle

    from ompy import MPI

    def dumps(obj, protocol=None):
        asked.append(obj)
        return pickle.dumps(obj, protocol)

    asked = []
    MPI.pickle.__init__(dumps, pickle.loads)
    try:
        request = comm.irecv(source=0)
        comm.send({"a": 1}, 0)
        assert request.wait() == {"a": 1}
        assert asked == [{"a": 1}]
    finally:
        MPI.pickle.__init__()
