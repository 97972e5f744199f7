"""A stand-in for `pytest` inside ranks, where a test file's decorators have no work left to do.

The parent process has collected, parametrised and marked the tests; a rank only needs the file to import.  Importing
the real pytest takes longer than starting the job, so that is put off until a test body asks for more than marks.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from typing import Any


def decorate(*arguments: Any, **options: Any) -> Any:
    """Serve as `@fixture` and as `@fixture(...)`: the function stays as it is."""
    if len(arguments) == 1 and not options and callable(arguments[0]):
        return arguments[0]
    return lambda function: function


class Marks:
    """`pytest.mark`: every mark leaves the function as it is."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return decorate


class StandIn(types.ModuleType):
    """The module that ranks find as `pytest`."""

    def __init__(self) -> None:
        super().__init__("pytest")
        self.mark = Marks()
        self.fixture = decorate

    @staticmethod
    def param(*values: Any, **options: Any) -> Any:
        return values

    def importorskip(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Where the module is missing, pytest's own says so."""
        try:
            return importlib.import_module(name)
        except ImportError:
            return self.real().importorskip(name, *arguments, **options)

    def real(self) -> Any:
        """pytest itself."""
        if sys.modules.get("pytest") is self:
            del sys.modules["pytest"]
        return importlib.import_module("pytest")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.real(), name)


def install() -> None:
    sys.modules.setdefault("pytest", StandIn())
