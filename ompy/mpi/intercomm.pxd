# Inter-communicators (MPI-4.1, 7.6).
from ompy.mpi.comm cimport Comm

cdef class Intercomm(Comm):
    pass
