from ompy.MPI import *  # noqa: F403
