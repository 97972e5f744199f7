"""A compiled method taken from its class looks at what it is called on."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

import pytest

from ompy import MPI

MODULES = ("ompy.", "ompy_")


def compiled_classes() -> Iterator[type]:
    """The extension types of all modules that are loaded, MPI's and those behind it."""
    for module in list(sys.modules.values()):
        if module.__name__.startswith(MODULES) and not (getattr(module, "__file__", None) or "").endswith(".py"):
            for value in list(vars(module).values()):
                if isinstance(value, type) and not value.__flags__ & (1 << 9):  # not made by a class statement
                    yield value


@pytest.mark.parametrize(
    "stranger", [5, None, "self", object(), MPI.INT], ids=["a number", "None", "text", "an object", "a datatype"]
)
def test_a_stranger_for_self_is_a_type_error(stranger):
    for call in (
        lambda: MPI.Intercomm.Barrier(stranger),
        lambda: MPI.Comm.Get_rank(stranger),
        lambda: MPI.Comm.Send(stranger, b"x", 0),
        lambda: MPI.Request.Wait(stranger),
        lambda: MPI.Win.Fence(stranger),
        lambda: MPI.Group.Get_size(stranger),
    ):
        with pytest.raises(TypeError, match="doesn't apply to"):
            call()


def test_every_method_of_a_compiled_class_checks_what_it_is_called_on():
    importlib.import_module("ompy.testing")
    functions = [
        f"{cls.__module__}.{cls.__name__}.{name}"
        for cls in compiled_classes()
        for name, value in vars(cls).items()
        if type(value).__name__ == "cython_function_or_method"
    ]
    assert len(list(compiled_classes())) > 50
    assert functions == []


@pytest.mark.parametrize("name", ["Comm.Send", "Comm.bcast", "Datatype.Create_vector"])
def test_help_shows_how_a_method_is_called(name):
    cls, _, method = name.partition(".")
    assert getattr(getattr(MPI, cls), method).__doc__.split("\n")[0].startswith(f"{method}(self, ") or (
        f"{method}(self, " in getattr(getattr(MPI, cls), method).__doc__.split("\n")[0]
    )


def test_an_intracommunicator_calls_its_own_methods_and_still_inherits_them():
    """The interpreter calls straight only methods of an object's very class."""
    for name in ("Isend", "Recv", "bcast", "Get_rank", "Free"):
        assert MPI.Intracomm.__dict__[name].__objclass__ is MPI.Intracomm
        assert getattr(MPI.Cartcomm, name) is MPI.Intracomm.__dict__[name]
        assert MPI.Intracomm.__dict__[name].__doc__ == getattr(MPI.Comm, name).__doc__

    class Derived(MPI.Intracomm):
        def Get_rank(self):
            return super().Get_rank() + 1

    assert Derived(MPI.COMM_SELF).Get_rank() == 1
    assert MPI.Comm.Get_size(MPI.COMM_SELF) == 1
