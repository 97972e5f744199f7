"""`mpi4py.MPI` is `ompy.MPI`: the same module object under both names."""

import sys

from ompy import MPI

sys.modules[__name__] = MPI
