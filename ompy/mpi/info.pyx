# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""Info objects (MPI-4.1, chapter 10)."""

import os
import sys

from ompy.mpi.handle cimport Handle, forget, is_predefined, predefine

from ompy.core.errors import ERR_ARG, ERR_INFO, ERR_INFO_KEY, ERR_INFO_NOKEY, ERR_INFO_VALUE
from ompy.mpi.exceptions import Exception as MPIException

__all__ = ["INFO_ENV", "INFO_NULL", "Info", "MAX_INFO_KEY", "MAX_INFO_VAL"]

# Longest key and value, in characters of UTF-8.
MAX_INFO_KEY = 255
MAX_INFO_VAL = 1024

# `pop` without a default.
cdef object REQUIRED = object()


cdef dict checked(Info info):
    if info is None or info.entries is None:
        raise MPIException(ERR_INFO, "info: an info object expected, not INFO_NULL")
    return info.entries


cdef str checked_key(str key):
    if not 0 < len(key.encode()) <= MAX_INFO_KEY:
        raise MPIException(ERR_INFO_KEY, f"key: 1 to {MAX_INFO_KEY} bytes expected, {key!r} has {len(key.encode())}")
    return key


cdef str checked_value(str value):
    if len(value.encode()) > MAX_INFO_VAL:
        raise MPIException(ERR_INFO_VALUE, f"value: at most {MAX_INFO_VAL} bytes expected, got {len(value.encode())}")
    return value


cdef class Info(Handle):
    """
    Hints for the library: an ordered mapping of strings to strings (MPI-4.1, chapter 10).

    Besides MPI's methods it has those of a `dict`.  INFO_NULL reads as an empty mapping.
    """

    def __cinit__(self, Info info=None):
        if info is not None:
            self.entries = info.entries

    cdef type family(self):
        return Info

    cdef object core(self):
        return self.entries

    cdef int become(self, object core) except -1:
        self.entries = core
        return 0

    def __reduce__(self):
        if is_predefined(self):
            return super().__reduce__()
        return type(self).Create, (self.items(),)

    @classmethod
    def Create(cls, items=None):
        """A new info object (MPI-4.1, 10).

        Parameters:
            items: what it holds at first: an Info, a mapping, or (key, value) pairs; default nothing.
        """
        cdef Info info = cls.__new__(cls)
        info.entries = {}
        if items is not None:
            info.update(items)
        return info

    @classmethod
    def Create_env(cls, args=None):
        """What is known of how this process was started, as in INFO_ENV (MPI-4.1, 11.2.3).

        Parameters:
            args: command line, the program first; default `sys.argv`.
        """
        cdef Info info = cls.__new__(cls)
        if args is None:
            args = sys.argv
        elif isinstance(args, str):
            args = [args]
        info.entries = environment([os.fspath(argument) for argument in args])
        return info

    def Free(self) -> None:
        """Let go of the object; the handle becomes INFO_NULL (MPI-4.1, 10).

        Raises:
            Exception: ERR_INFO for INFO_NULL, ERR_ARG for INFO_ENV.
        """
        checked(self)
        if is_predefined(self):
            raise MPIException(ERR_ARG, "INFO_ENV can't be freed")
        forget(self)
        self.entries = None

    def Dup(self):
        """A new info object with the same entries in the same order (MPI-4.1, 10)."""
        cdef Info info = type(self).__new__(type(self))
        info.entries = dict(checked(self))
        return info

    def Get(self, str key not None):
        """Value of a key, or None (MPI-4.1, 10)."""
        return checked(self).get(checked_key(key))

    def Set(self, str key not None, str value not None) -> None:
        """Set or replace the value of a key (MPI-4.1, 10)."""
        checked(self)[checked_key(key)] = checked_value(value)

    def Delete(self, str key not None) -> None:
        """Remove a key (MPI-4.1, 10).

        Raises:
            Exception: ERR_INFO_NOKEY when it isn't there.
        """
        if checked(self).pop(checked_key(key), None) is None:
            raise MPIException(ERR_INFO_NOKEY, f"key: {key!r} isn't there")

    def Get_nkeys(self) -> int:
        """Number of keys (MPI-4.1, 10)."""
        return len(checked(self))

    def Get_nthkey(self, Py_ssize_t n) -> str:
        """The n-th key, from 0, in the order in which they were set (MPI-4.1, 10)."""
        cdef list keys = list(checked(self))
        if not 0 <= n < len(keys):
            raise MPIException(ERR_ARG, f"n: 0 to {len(keys) - 1} expected, got {n}")
        return keys[n]

    def __len__(self) -> int:
        return 0 if self.entries is None else len(self.entries)

    def __iter__(self):
        return iter(self.keys())

    def __contains__(self, str key not None) -> bool:
        return self.entries is not None and key in self.entries

    def __getitem__(self, str key not None) -> str:
        if self.entries is None:
            raise KeyError(key)
        return self.entries[key]

    def __setitem__(self, str key not None, str value not None):
        if self.entries is None:
            raise KeyError(key)
        self.Set(key, value)

    def __delitem__(self, str key not None):
        if self.entries is None:
            raise KeyError(key)
        del self.entries[key]

    def get(self, str key not None, object default=None):
        """Value of a key, or `default` (MPI-4.1, chapter 10)."""
        return default if self.entries is None else self.entries.get(key, default)

    def keys(self) -> list:
        """List of the keys (MPI-4.1, chapter 10)."""
        return [] if self.entries is None else list(self.entries)

    def values(self) -> list:
        """List of the values (MPI-4.1, chapter 10)."""
        return [] if self.entries is None else list(self.entries.values())

    def items(self) -> list:
        """List of (key, value) (MPI-4.1, chapter 10)."""
        return [] if self.entries is None else list(self.entries.items())

    def update(self, items=(), **kwds) -> None:
        """Set keys from an Info, a mapping or pairs, and from keyword arguments (MPI-4.1, chapter 10)."""
        if self.entries is None:
            raise KeyError("INFO_NULL can't be updated")
        if hasattr(items, "keys"):
            items = [(key, items[key]) for key in items.keys()]
        for key, value in items:
            self.Set(key, value)
        for key, value in kwds.items():
            self.Set(key, value)

    def pop(self, str key not None, object default=REQUIRED):
        """Remove a key and return its value; `default` when it isn't there, KeyError without one (MPI-4.1, chapter 10)."""
        if self.entries is not None and key in self.entries:
            return self.entries.pop(key)
        if default is REQUIRED:
            raise KeyError(key)
        return default

    def popitem(self) -> tuple:
        """Remove and return the (key, value) set last; KeyError when there is none (MPI-4.1, chapter 10)."""
        if not self.entries:
            raise KeyError("popitem(): info is empty")
        return self.entries.popitem()

    def copy(self):
        """A new info object with the same entries; INFO_NULL for INFO_NULL (MPI-4.1, chapter 10)."""
        return type(self)() if self.entries is None else self.Dup()

    def clear(self) -> None:
        """Remove every key (MPI-4.1, chapter 10)."""
        if self.entries is not None:
            self.entries.clear()


cdef Info new_info(dict entries):
    cdef Info info = Info.__new__(Info)
    info.entries = dict(entries)
    return info


def hints_of(info) -> dict:
    """A copy of the hints in an argument that may be None or INFO_NULL."""
    return hints(info)


cdef dict hints(object info):
    if info is None or (<Info?> info).entries is None:
        return {}
    return dict((<Info> info).entries)


cdef dict environment(list arguments):
    """Entries that MPI reserves for INFO_ENV, those that are known."""
    cdef dict entries = {}
    if arguments and arguments[0]:
        entries["command"] = arguments[0]
    if len(arguments) > 1:
        entries["argv"] = " ".join(arguments[1:])
    system = os.uname()
    entries["maxprocs"] = os.environ.get("PMI_SIZE", "1")
    entries["host"] = system.nodename
    entries["arch"] = system.machine
    try:
        entries["wdir"] = os.getcwd()
    except OSError:
        pass                                     # it has no name any more
    entries["thread_level"] = "MPI_THREAD_MULTIPLE"
    return {key: value[:MAX_INFO_VAL] for key, value in entries.items()}


INFO_NULL = predefine(Info(), "INFO_NULL")
INFO_ENV = predefine(new_info(environment(list(getattr(sys, "argv", ())))), "INFO_ENV")
