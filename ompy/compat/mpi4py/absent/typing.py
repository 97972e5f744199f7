"""Stands where `mpi4py.typing` would be if mpi4py were installed, and says so."""

from __future__ import annotations

import mpi4py

raise mpi4py.missing(__spec__.name)  # under `python -m` as well
