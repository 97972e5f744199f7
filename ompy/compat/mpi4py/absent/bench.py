"""Stands where `mpi4py.bench` would be if mpi4py were installed, and says so."""

from __future__ import annotations

import mpi4py

raise mpi4py.missing(__name__)
