"""Fortran's types by what they hold or by their size (MPI-4.1, 19.1.9)."""

from __future__ import annotations

from ompy.core.errors import ERR_ARG
from ompy.mpi.exceptions import Exception as MPIException

__all__ = ["TYPECLASS_COMPLEX", "TYPECLASS_INTEGER", "TYPECLASS_LOGICAL", "TYPECLASS_REAL"]

# Classes of types; values follow Open MPI's mpi.h.
TYPECLASS_INTEGER = 1
TYPECLASS_REAL = 2
TYPECLASS_COMPLEX = 3
TYPECLASS_LOGICAL = 4

#: most decimal digits -> bytes
INTEGERS = {2: 1, 4: 2, 9: 4, 18: 8, 38: 16}

#: most decimal digits and most decimal exponent -> bytes
REALS = {(6, 37): 4, (15, 307): 8, (33, 4931): 16}

#: type class -> name, sizes in bytes
CLASSES = {
    TYPECLASS_INTEGER: ("INTEGER", (1, 2, 4, 8, 16)),
    TYPECLASS_REAL: ("REAL", (2, 4, 8, 16)),
    TYPECLASS_COMPLEX: ("COMPLEX", (4, 8, 16, 32)),
    TYPECLASS_LOGICAL: ("LOGICAL", (1, 2, 4, 8, 16)),
}


def integer_name(digits: int) -> str:
    """The smallest integer of so many decimal digits."""
    for most, size in INTEGERS.items():
        if digits <= most:
            return f"INTEGER{size}"
    raise MPIException(ERR_ARG, f"r: no integer has {digits} decimal digits")


def real_size(digits: int, exponent: int) -> int:
    for (most_digits, most_exponent), size in REALS.items():
        if digits <= most_digits and exponent <= most_exponent:
            return size
    raise MPIException(ERR_ARG, f"p, r: no real has {digits} decimal digits and exponents of {exponent}")


def real_name(digits: int, exponent: int) -> str:
    """The smallest real of so many decimal digits and such exponents; UNDEFINED, which is negative, asks for nothing."""
    return f"REAL{real_size(digits, exponent)}"


def complex_name(digits: int, exponent: int) -> str:
    """The smallest complex whose parts are of so many decimal digits and such exponents."""
    return f"COMPLEX{2 * real_size(digits, exponent)}"


def name_of_size(typeclass: int, size: int) -> str:
    """The type of a class with so many bytes."""
    name, sizes = CLASSES.get(typeclass, ("", ()))
    if size not in sizes:
        raise MPIException(ERR_ARG, f"size: type class {typeclass} has no type of {size} bytes; it has {sizes}")
    return f"{name}{size}"
