"""What stands in for other libraries: a folder to put on a program's module path, and never otherwise importable."""

from __future__ import annotations

import os


def folder() -> str:
    """The folder that `ompyrun --mpi4py` puts in front of `PYTHONPATH`: it holds a package called `mpi4py`."""
    return os.path.dirname(os.path.abspath(__file__))
