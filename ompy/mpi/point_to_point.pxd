# Point-to-point communication of a communicator (MPI-4.1, chapters 3 and 4).
from ompy.core.communicator cimport Communicator
from ompy.mpi.handle cimport Handle

cdef class PointToPoint(Handle):
    cdef Communicator comm                       # the core object; None for COMM_NULL


# A lock of the communicator, made at first use: what keeps object collectives of several threads apart.
cdef object lock_of(Communicator comm, object key)
