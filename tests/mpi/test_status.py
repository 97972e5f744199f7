"""Statuses: fields, counts of several types, copies, and the integers that other languages see."""

from __future__ import annotations

import copy
import pickle

import numpy
import pytest

from ompy import MPI


def filled():
    status = MPI.Status()
    status.source, status.tag, status.error, status.cancelled = 3, 9, MPI.ERR_TRUNCATE, True
    status.count = 5 << 32
    return status


def test_a_new_status_is_empty():
    status = MPI.Status()
    assert (status.source, status.tag, status.error, status.count) == (MPI.ANY_SOURCE, MPI.ANY_TAG, MPI.SUCCESS, 0)
    assert status.Is_cancelled() is False


@pytest.mark.parametrize(
    "duplicate",
    [MPI.Status, copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it)), lambda it: MPI.Status.f2py(it.py2f())],
)
def test_a_copy_is_equal_and_its_own(duplicate):
    original = filled()
    twin = duplicate(original)
    assert twin == original
    twin.tag = 1
    assert twin != original
    assert original.tag == 9


def test_counts_are_in_whole_elements():
    status = MPI.Status()
    pair = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.INT, MPI.DOUBLE]).Commit()
    empty = MPI.INT.Create_contiguous(0).Commit()
    assert status.Get_count(empty) == 0
    status.count = 24
    assert status.Get_count(MPI.INT) == 6
    assert status.Get_count(pair) == 2
    assert status.Get_elements(pair) == 4
    assert status.Get_count(empty) == MPI.UNDEFINED
    status.count = 16
    assert status.Get_count(pair) == MPI.UNDEFINED
    assert status.Get_elements(pair) == 3
    status.count = 18
    assert status.Get_elements(pair) == MPI.UNDEFINED
    status.Set_elements(pair, 3)
    assert status.count == 16
    with pytest.raises(MPI.Exception, match="DATATYPE_NULL"):
        status.Get_count(MPI.DATATYPE_NULL)
    pair.Free()
    empty.Free()


def test_a_receive_fills_it_in():
    status = MPI.Status()
    MPI.COMM_SELF.Sendrecv(numpy.zeros(5, "i"), 0, 12, numpy.zeros(9, "i"), 0, MPI.ANY_TAG, status)
    assert (status.Get_source(), status.Get_tag(), status.Get_count(MPI.INT)) == (0, 12, 5)


def test_the_list_of_fortran_has_a_fixed_length():
    numbers = filled().py2f()
    assert len(numbers) == MPI.F_STATUS_SIZE
    assert (numbers[MPI.F_SOURCE], numbers[MPI.F_TAG], numbers[MPI.F_ERROR]) == (3, 9, MPI.ERR_TRUNCATE)
    with pytest.raises(ValueError, match="6 integers"):
        MPI.Status.f2py(numbers[:3])


@pytest.mark.parametrize("count", [-1, 1 << 61, 1 << 70])
def test_no_status_tells_of_so_many_elements(count):
    with pytest.raises(MPI.Exception, match="count: 0 to") as caught:
        MPI.Status().Set_elements(MPI.DOUBLE, count)
    assert caught.value.Get_error_class() == MPI.ERR_COUNT
