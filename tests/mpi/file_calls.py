"""What tests of files have in common: where the ranks' file is, and what a call on it raises."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ompy import MPI


def path_of(comm: MPI.Intracomm, tmp_path: Path, name: str = "data") -> str:
    """The same on all ranks."""
    return os.path.join(comm.bcast(str(tmp_path)), name)


def error_of(function: Callable[..., object], *arguments: object) -> MPI.Exception:
    """What a call raises.  Imports nothing: signals would come meanwhile, and a test may have given up its permissions."""
    try:
        function(*arguments)
    except MPI.Exception as error:
        return error
    raise AssertionError("no error")
