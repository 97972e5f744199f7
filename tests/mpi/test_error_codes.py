"""Error classes and codes that a program adds."""

import pytest

from ompy import MPI


def test_an_added_code_belongs_to_its_class():
    added = MPI.Add_error_class()
    code = MPI.Add_error_code(added)
    assert added > MPI.ERR_LASTCODE
    assert MPI.Get_error_class(code) == added
    assert MPI.COMM_WORLD.Get_attr(MPI.LASTUSEDCODE) == code
    assert MPI.Get_error_string(code) == ""
    MPI.Add_error_string(code, "out of cheese")
    assert str(MPI.Exception(code)) == "out of cheese"
    for remove, number in ((MPI.Remove_error_class, added), (MPI.Remove_error_code, code)):
        with pytest.raises(MPI.Exception):
            remove(number)
    MPI.Remove_error_string(code)
    MPI.Remove_error_code(code)
    MPI.Remove_error_class(added)
    assert MPI.Get_error_class(code) == MPI.ERR_UNKNOWN


def test_codes_of_the_standard_cannot_be_removed():
    with pytest.raises(MPI.Exception, match="was not added"):
        MPI.Remove_error_class(MPI.ERR_RANK)
