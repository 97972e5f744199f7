"""ompy in mpi4py's place: `from mpi4py import MPI` receives `ompy.MPI`.

Where the mpi4py distribution is installed, its pure-Python parts (`futures`, `util`, `run`, `bench`) are found as well
and run on ompy: the package's path goes on into the installed one.

    mpi4py.__path__ = [this folder: MPI, futures]  [the installed mpi4py, if any]  [absent/: for when there is none]

`absent/` has a `run` that does without mpi4py; the other parts that only mpi4py has say there how to get them.
"""

from __future__ import annotations

import os
import sys

try:
    from ompy.mpi.foreign import Package
except ModuleNotFoundError as error:
    if error.name != "ompy":
        raise
    raise ModuleNotFoundError(
        f"ompy stands in for mpi4py here, but {sys.executable} has no ompy: install it there, or start the python that has it",
        name="ompy",
    ) from None
from ompy.mpi.options import rc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["MPI"]
__version__ = "4.1.2"  # the interface offered

HERE = os.path.dirname(os.path.abspath(__file__))


def installed() -> str | None:
    """The folder of the mpi4py distribution further along `sys.path`."""
    for entry in sys.path:
        candidate = os.path.join(entry or os.curdir, "mpi4py")
        if os.path.isfile(os.path.join(candidate, "__init__.py")) and not os.path.samefile(candidate, HERE):
            return os.path.abspath(candidate)
    return None


BENEATH = installed()
# `ompyrun --mpi4py` and a person put the folder above on PYTHONPATH; `ompy activate` has it there otherwise.
ACTIVATED = os.path.dirname(HERE) not in os.environ.get("PYTHONPATH", "").split(os.pathsep)
__path__ = [HERE, *([BENEATH] if BENEATH else []), os.path.join(HERE, "absent")]
if BENEATH:
    # Programs look beside this for headers and data files.
    __file__ = os.path.join(BENEATH, "__init__.py")


sys.modules[__name__].__class__ = Package
# Options of start-up; a module of its own too, for `import mpi4py.rc`.
sys.modules[f"{__name__}.rc"] = rc  # type: ignore[assignment]


def get_include() -> str:
    """Folder of the installed mpi4py's C headers.  Raises FileNotFoundError where mpi4py is not installed."""
    if BENEATH is None:
        raise FileNotFoundError("ompy has no C headers, and no mpi4py distribution is installed whose headers could be used")
    return os.path.join(BENEATH, "include")


def get_config() -> dict[str, str]:
    """What `MPI` is here, where it is, and who chose it; no compilers or flags, for ompy is not built on another MPI."""
    from importlib.metadata import version

    return {"library": f"ompy {version('ompy')}", "path": HERE, "chosen": "ompy activate" if ACTIVATED else "PYTHONPATH"}


def missing(name: str) -> ModuleNotFoundError:
    """The error of a part that only the mpi4py distribution has."""
    words = "is a part of the mpi4py distribution, which is not installed here: `pip install mpi4py` puts it beside ompy"
    return ModuleNotFoundError(f"{name} {words}", name=name)


def profile(name: str | bytes | os.PathLike[str], *, path: Any = None) -> None:
    """Load a shared library into the process, as a PMPI profiler is loaded; ompy's calls do not pass through it.

    Parameters:
        name: `foo` for `libfoo.so`, or a file's name.
        path: folders to look in: a string with separators, a path, or several of them.

    Raises ValueError when there is no such file; warns when it can't be loaded.
    """
    folders: Iterable[Any]
    if path is None:
        folders = [""]
    elif isinstance(path, str):
        folders = path.split(os.pathsep)
    elif isinstance(path, bytes):
        folders = path.split(os.fsencode(os.pathsep))
    elif isinstance(path, os.PathLike):
        folders = [path]
    else:
        folders = path
    word = os.fsdecode(name)
    for folder in map(os.fsdecode, folders):
        for candidate in (os.path.join(folder, word), os.path.join(folder, f"lib{word}.so")):
            if os.path.isfile(candidate):
                load_profiler(os.path.realpath(candidate))
                return
    raise ValueError(f"profiler {word!r} not found")


def load_profiler(filename: str) -> None:
    import ctypes

    try:
        profilers.append(ctypes.CDLL(filename, mode=ctypes.RTLD_GLOBAL))
    except OSError as error:
        import warnings

        warnings.warn(str(error), stacklevel=3)


profilers: list[Any] = []
