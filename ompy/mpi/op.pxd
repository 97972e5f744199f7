# Reduction operations (MPI-4.1, 6.9): handles on an operation of the core.
from ompy.core.operation cimport Operation
from ompy.mpi.handle cimport Handle

cdef class Op(Handle):
    cdef Operation operation                     # None: OP_NULL
    cdef bint adopted                            # made from an integer handle
