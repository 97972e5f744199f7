"""Error handlers (MPI-4.1, 9.3)."""

from typing import Any, Self

from ompy.mpi.handle import Handle

ERRHANDLER_NULL: Errhandler
ERRORS_ARE_FATAL: Errhandler
ERRORS_RETURN: Errhandler
ERRORS_ABORT: Errhandler

class ErrorHandler:
    def __init__(self, name: str, kind: str = ..., function: Any = ...) -> None: ...
    def __call__(self, subject: Any, exception: Any) -> None: ...

class Errhandler(Handle):
    def __new__(cls, errhandler: Errhandler | None = ...) -> Self: ...
    def Free(self) -> None: ...
