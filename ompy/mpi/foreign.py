"""Code that was compiled against a C library of MPI, and what it is told: ompy has no such library.

An extension module for mpi4py asks, while it is imported, the module `mpi4py.MPI` for its classes and its functions in C, and
takes their layout for that of the library which it was compiled with.  It finds a `Gate` there instead of the module:

    sys.modules["mpi4py.MPI"]  Gate --- from an extension's start --> ImportError that says what is the matter
                                \\----- from anywhere else ----------> ompy.MPI
    mpi4py.MPI                 ompy.MPI itself, which is what every import statement yields
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any
else:
    ModuleType = type(sys)

ELSEWHERE = (
    "run the program over the library that this was built with (without --mpi4py; OMPY_MPI4PY=no where `ompy activate` is in"
    " force), or do without it"
)
# The function of the import system below which an extension module starts; it looks nothing up itself.
STARTER = ("<frozen importlib._bootstrap>", "_call_with_frames_removed")


def refuse_extension(name: str) -> None:
    raise ImportError(
        f"this extension module wants mpi4py.MPI.{name} of an mpi4py over a C library of MPI; here mpi4py is ompy, which has"
        f" none: {ELSEWHERE}"
    )


class Gate(ModuleType):
    """Stands for a module, everywhere but at the start of extension modules.

    Parameters:
        module: what it stands for.
    """

    def __init__(self, module: ModuleType) -> None:
        object.__setattr__(self, "_module", module)

    def __getattribute__(self, name: str) -> Any:
        code = sys._getframe(1).f_code
        if (code.co_filename, code.co_name) == STARTER and name != "__spec__":
            refuse_extension(name)
        return getattr(object.__getattribute__(self, "_module"), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(object.__getattribute__(self, "_module"), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(object.__getattribute__(self, "_module"), name)

    def __dir__(self) -> list[str]:
        return dir(object.__getattribute__(self, "_module"))


class Package(ModuleType):
    """A package that takes what a gate stands for as its submodule."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, object.__getattribute__(value, "_module") if isinstance(value, Gate) else value)
