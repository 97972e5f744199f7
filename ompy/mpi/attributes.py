"""Attributes that a program caches on communicators, datatypes and windows (MPI-4.1, 7.7).

The values of one object are a dict, `attributes["keyvals"]` of its core object: key value -> (Keyval, value).  An entry
keeps its Keyval, so that the callbacks of a key that was freed still run for the values that are left (7.7.2).
"""

from __future__ import annotations

from ompy.core.errors import ERR_KEYVAL, ERR_OTHER
from ompy.mpi.exceptions import Exception as MPIException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Table = dict[int, tuple["Keyval", Any]]

__all__ = [
    "APPNUM",
    "HOST",
    "IO",
    "KEYVAL_INVALID",
    "LASTUSEDCODE",
    "TAG_UB",
    "UNIVERSE_SIZE",
    "WIN_BASE",
    "WIN_CREATE_FLAVOR",
    "WIN_DISP_UNIT",
    "WIN_FLAVOR",
    "WIN_MODEL",
    "WIN_SIZE",
    "WTIME_IS_GLOBAL",
]

KEYVAL_INVALID = -1

# Keys of the library's own, numbered as in Open MPI's mpi.h.
TAG_UB = 0
HOST = 1
IO = 2
WTIME_IS_GLOBAL = 3
APPNUM = 4
LASTUSEDCODE = 5
UNIVERSE_SIZE = 6
WIN_BASE = 7
WIN_SIZE = 8
WIN_DISP_UNIT = 9
WIN_CREATE_FLAVOR = 10
WIN_FLAVOR = WIN_CREATE_FLAVOR
WIN_MODEL = 11

FIRST_KEYVAL = 100


class Keyval:
    """One key: for which kind of object, and what happens when an object is copied or an attribute removed.

    Parameters:
        kind: "Comm", "Datatype" or "Win".
        copy_fn: function(object, keyval, value) that returns the copy's value or NotImplemented for none; True to hand
            the value on; None or False to leave it behind.
        delete_fn: function(object, keyval, value), or None.
        nopython: values are integers that mean something outside Python.
    """

    __slots__ = ("copy_fn", "delete_fn", "kind", "nopython", "number")

    def __init__(self, number: int, kind: str, copy_fn: Any, delete_fn: Any, nopython: bool) -> None:
        self.number = number
        self.kind = kind
        self.copy_fn = copy_fn
        self.delete_fn = None if isinstance(delete_fn, bool) else delete_fn
        self.nopython = nopython


keyvals: dict[int, Keyval] = {}
next_number = FIRST_KEYVAL


def create_keyval(kind: str, copy_fn: Any, delete_fn: Any, nopython: bool) -> int:
    """A new key for objects of a kind."""
    global next_number
    number = next_number
    next_number += 1
    keyvals[number] = Keyval(number, kind, copy_fn, delete_fn, nopython)
    return number


def free_keyval(kind: str, number: int) -> int:
    """Give a key up; returns KEYVAL_INVALID.  Errors: ERR_KEYVAL."""
    del keyvals[known(kind, number).number]
    return KEYVAL_INVALID


def known(kind: str, number: int) -> Keyval:
    """The key of a number.  Errors: ERR_KEYVAL for none, and for another kind's."""
    keyval = keyvals.get(number)
    if keyval is None or keyval.kind != kind:
        raise MPIException(ERR_KEYVAL, f"keyval: {number} is no key for a {kind}")
    return keyval


def table_of(attributes: dict[str, Any]) -> Table:
    """The values of the object whose core object has these attributes."""
    table: Table = attributes.setdefault("keyvals", {})
    return table


def get_attr(kind: str, attributes: dict[str, Any], number: int) -> Any:
    """Value of a key, or None."""
    known(kind, number)
    entry = table_of(attributes).get(number)
    return None if entry is None else entry[1]


def set_attr(kind: str, handle: object, attributes: dict[str, Any], number: int, value: Any) -> None:
    """Set the value of a key; the delete function runs for the one that was there."""
    keyval = known(kind, number)
    if keyval.nopython and not isinstance(value, int):
        raise TypeError(f"attrval: an int expected for a key made with nopython, not {type(value).__name__}")
    table = table_of(attributes)
    if number in table:
        remove(handle, table, number)
    table[number] = keyval, value


def delete_attr(kind: str, handle: object, attributes: dict[str, Any], number: int) -> None:
    """Remove the value of a key.  Errors: ERR_KEYVAL when there is none, ERR_OTHER when the delete function fails."""
    known(kind, number)
    table = table_of(attributes)
    if number not in table:
        raise MPIException(ERR_KEYVAL, f"keyval: {number} has no value on this {kind}")
    remove(handle, table, number)


def remove(handle: object, table: Table, number: int) -> None:
    # The value goes first: a delete function that fails must not be met again when the object is freed.
    keyval, value = table.pop(number)
    if keyval.delete_fn is not None:
        call(keyval.delete_fn, handle, number, value)


def copy_attrs(handle: object, attributes: dict[str, Any], copy: dict[str, Any]) -> None:
    """What a duplicate's attributes become: each key's copy function decides (MPI-4.1, 7.7.2)."""
    for number, (keyval, value) in list(attributes.get("keyvals", {}).items()):
        if keyval.copy_fn is None or keyval.copy_fn is False:
            continue
        if keyval.copy_fn is not True:
            value = call(keyval.copy_fn, handle, number, value)
            if value is NotImplemented:
                continue
        table_of(copy)[number] = keyval, value


def delete_attrs(handle: object, attributes: dict[str, Any]) -> None:
    """Remove all values, the last one set first, before the object is freed."""
    table = table_of(attributes)
    for number in reversed(list(table)):
        if number in table:
            remove(handle, table, number)


def call(function: Callable[..., Any], handle: object, number: int, value: Any) -> Any:
    """A callback of the program's; what it raises is shown, and becomes ERR_OTHER (MPI-4.1, 7.7.2)."""
    try:
        return function(handle, number, value)
    except BaseException as error:
        import traceback

        traceback.print_exc()
        name = getattr(function, "__name__", "callback")
        raise MPIException(ERR_OTHER, f"attribute function {name} raised {type(error).__name__}: {error}") from error
