"""Every public name of ompy.MPI tells what it is, with the section of the standard that it comes from."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from ompy import MPI

SECTION = re.compile(r"MPI-\d\.\d, (chapter )?\d+")
# What is Python's and not the standard's: views of memory, serialisation, options of start-up, this library's name.
PYTHON_ONLY = re.compile(r"(buffer|memory|Pickle)(\.\w+)?|rc(\.\w+)?|get_vendor")
# Attributes of special values that compiled classes hold as plain members, which have no docstrings.
MEMBERS = re.compile(r"(BottomType|InPlaceType|BufferAutomaticType)\.(name|value)")


def attributes(cls: type) -> Iterator[tuple[str, Any]]:
    """Names and descriptors of a class and of its bases in ompy, as they are documented."""
    for name in dir(cls):
        owner = next(base for base in cls.__mro__ if name in vars(base) or base is object)
        if not name.startswith("_") and owner.__module__.startswith("ompy."):
            raw = vars(owner)[name]
            documented = getattr(owner, name) if isinstance(raw, (staticmethod, classmethod)) else raw
            if callable(documented) or inspect.isdatadescriptor(documented):
                yield f"{cls.__name__}.{name}", documented


def documented_names() -> dict[str, Any]:
    """Classes, their methods and properties, and functions; constants have no docstring of their own."""
    found: dict[str, Any] = {}
    for name, value in vars(MPI).items():
        if name.startswith("_") or not callable(value) or isinstance(value, (MPI.Datatype, int)):
            continue
        found[name] = value
        if inspect.isclass(value):
            found |= dict(attributes(value))
    return {name: value for name, value in found.items() if not MEMBERS.fullmatch(name)}


NAMES = documented_names()


def text(value: Any) -> str:
    """A docstring without the signature that the compiler puts first."""
    words = inspect.getdoc(value) or ""
    first, _, rest = words.partition("\n")
    return rest.strip() if re.match(r"[\w.]+\(.*\)|[\w.]+: ", first) and rest.strip() else words.strip()


def test_the_names_are_found() -> None:
    assert {"Comm", "Comm.Send", "Comm.rank", "Datatype.Create_struct", "Wtime", "Info.Get"} <= NAMES.keys()
    assert len(NAMES) > 1000


def test_each_has_a_sentence() -> None:
    bad = [name for name, value in NAMES.items() if not re.match(r"[`A-Z(\"].*\.", text(value), re.DOTALL)]
    assert not bad


def test_each_names_its_section() -> None:
    bad = [name for name, value in NAMES.items() if not PYTHON_ONLY.fullmatch(name) and not SECTION.search(text(value))]
    assert not bad


@pytest.mark.parametrize("name", ["Comm.Allreduce", "Comm.Recv", "Comm.Gatherv", "Comm.Alltoallw"])
def test_calls_with_buffers_tell_parameters(name: str) -> None:
    assert "Parameters:" in text(NAMES[name])
