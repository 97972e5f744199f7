# Intra-communicators (MPI-4.1, 7.2): one group.
from ompy.mpi.comm cimport Comm

cdef class Intracomm(Comm):
    pass
