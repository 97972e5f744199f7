"""The installed `mpi4py.futures`, with one thing added: where no workers can be started, futures fail with the reason.

mpi4py starts workers in a thread of its own, and an exception there would leave everybody who waits for a result waiting.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys

import mpi4py

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Manager = Callable[..., None]


def telling(manager: Manager) -> Manager:
    """A manager of workers whose failure is its pool's: what is submitted, before and after, raises BrokenExecutor."""

    @functools.wraps(manager)
    def run(pool: Any, *arguments: Any) -> None:
        try:
            manager(pool, *arguments)
        except BaseException as error:
            pool.size = 0
            pool.broken(f"no workers: {error}")

    return run


def load(folder: str) -> None:
    """Put the package that lies in a folder into this one's place."""
    path = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location(__name__, path, submodule_search_locations=[folder])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[__name__] = module
    spec.loader.exec_module(module)
    core = sys.modules[f"{__name__}._core"]
    for name in ("_manager_spawn", "_manager_service"):
        setattr(core, name, telling(getattr(core, name)))


if mpi4py.BENEATH is None:
    raise mpi4py.missing(__name__)
load(os.path.join(mpi4py.BENEATH, "futures"))
