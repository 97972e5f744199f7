"""Error classes and codes that a program adds (MPI-4.1, 9.5)."""

from __future__ import annotations

from ompy.core import errors
from ompy.core.errors import ADDED, DESCRIPTIONS
from ompy.mpi.exceptions import Exception

__all__ = [
    "Add_error_class",
    "Add_error_code",
    "Add_error_string",
    "Get_error_class",
    "Get_error_string",
    "Remove_error_class",
    "Remove_error_code",
    "Remove_error_string",
]

# The largest code or class ever given out: the value of the attribute LASTUSEDCODE.
last_used = errors.ERR_LASTCODE


def next_number() -> int:
    global last_used
    last_used += 1
    return last_used


def Get_error_class(errorcode: int) -> int:
    """Class of an error code (MPI-4.1, 9.4).  ERR_UNKNOWN for a number that is no error code."""
    return errors.error_class(errorcode)


def Get_error_string(errorcode: int) -> str:
    """Words for an error code or class (MPI-4.1, 9.4); empty for an added one that has none yet."""
    return errors.error_string(errorcode)


def Add_error_class() -> int:
    """A new error class, above ERR_LASTCODE (MPI-4.1, 9.5)."""
    number = next_number()
    ADDED[number] = number
    return number


def Add_error_code(errorclass: int) -> int:
    """A new error code of a class (MPI-4.1, 9.5).

    Raises:
        Exception: ERR_ARG when `errorclass` is not an error class.
    """
    if errors.error_class(errorclass) != errorclass:
        raise Exception(errors.ERR_ARG, f"errorclass: {errorclass} is not an error class")
    number = next_number()
    ADDED[number] = errorclass
    return number


def Add_error_string(errorcode: int, string: str) -> None:
    """Give an added code or class its words (MPI-4.1, 9.5).

    Raises:
        Exception: ERR_ARG when the program did not add `errorcode`.
    """
    check_added("errorcode", errorcode)
    DESCRIPTIONS[errorcode] = string


def Remove_error_class(errorclass: int) -> None:
    """Take back an added class that has no code and no words left (MPI-4.1, 9.5).

    Raises:
        Exception: ERR_ARG when the program did not add the class, or it still has codes or words.
    """
    check_added("errorclass", errorclass)
    if ADDED[errorclass] != errorclass:
        raise Exception(errors.ERR_ARG, f"errorclass: {errorclass} is an error code, not a class")
    if errorclass in DESCRIPTIONS:
        raise Exception(errors.ERR_ARG, f"errorclass: {errorclass} still has a string: remove that first")
    if any(kind == errorclass for code, kind in ADDED.items() if code != errorclass):
        raise Exception(errors.ERR_ARG, f"errorclass: {errorclass} still has error codes: remove those first")
    del ADDED[errorclass]


def Remove_error_code(errorcode: int) -> None:
    """Take back an added code that has no words left (MPI-4.1, 9.5).

    Raises:
        Exception: ERR_ARG when the program did not add the code, or it still has words.
    """
    check_added("errorcode", errorcode)
    if ADDED[errorcode] == errorcode:
        raise Exception(errors.ERR_ARG, f"errorcode: {errorcode} is an error class, not a code")
    if errorcode in DESCRIPTIONS:
        raise Exception(errors.ERR_ARG, f"errorcode: {errorcode} still has a string: remove that first")
    del ADDED[errorcode]


def Remove_error_string(errorcode: int) -> None:
    """Take the words back from an added code or class (MPI-4.1, 9.5).

    Raises:
        Exception: ERR_ARG when the program did not add the code or gave it no words.
    """
    check_added("errorcode", errorcode)
    if errorcode not in DESCRIPTIONS:
        raise Exception(errors.ERR_ARG, f"errorcode: {errorcode} has no string")
    del DESCRIPTIONS[errorcode]


def check_added(name: str, number: int) -> None:
    if number not in ADDED:
        raise Exception(errors.ERR_ARG, f"{name}: {number} was not added by this program")
