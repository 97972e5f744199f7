# Communicators with a topology (MPI-4.1, chapter 8).
from ompy.mpi.intracomm cimport Intracomm

cdef class Topocomm(Intracomm):
    # The topology, which must be of a class of `ompy.mpi.topology`; raises MPIError(ERR_TOPOLOGY).
    cdef object topology_as(self, object kind, str name)


cdef class Cartcomm(Topocomm):
    cdef object grid(self)


cdef class Graphcomm(Topocomm):
    cdef object graph(self)


cdef class Distgraphcomm(Topocomm):
    pass
