"""`mpi4py.rc` is the object with ompy's options of start-up; importing it starts nothing."""

import sys

from ompy.mpi.options import rc

sys.modules[__name__] = rc  # type: ignore[assignment]
