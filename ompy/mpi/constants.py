"""Numbers that belong to no class of the MPI layer.  They follow Open MPI's mpi.h, as `ompy/core/constants.pxd` does."""

from __future__ import annotations

UNDEFINED = -32766
ANY_SOURCE = -1
ANY_TAG = -1
PROC_NULL = -2
ROOT = -4
