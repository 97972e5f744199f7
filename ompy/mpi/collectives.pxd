# Collective communication of buffers (MPI-4.1, chapter 6).
from ompy.core.communicator cimport Communicator
from ompy.mpi.point_to_point cimport PointToPoint
from ompy.mpi.request cimport Prequest, Request

cdef class Collectives(PointToPoint):
    # The core object; raises MPIError(ERR_COMM) for COMM_NULL.
    cdef Communicator live(self)
    # One collective in its three forms; the arguments are those of `ompy.mpi.collective_calls.make_call`.
    cdef int carry_out(self, int function, object send, object recv, object op, object counts, int root) except -1
    cdef Request begin(self, int function, object send, object recv, object op, object counts, int root)
    cdef Prequest prepare(self, int function, object send, object recv, object op, object counts, int root)
