# Intra-communicators (MPI-4.1, 7.2): one group.
from ompy.mpi.comm cimport Comm

cdef class Intracomm(Comm):
    # A communicator of the first `count` processes, which have a topology.
    cdef object arranged(self, object topology, int count, object kind, object info=*)
