"""What the row `spawn` starts: a process that meets its parent and leaves it."""

from mpi4py import MPI

MPI.Comm.Get_parent().Disconnect()
