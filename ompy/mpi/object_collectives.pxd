# Collective communication of Python objects (the lower-case methods).
from ompy.mpi.collectives cimport Collectives

cdef class ObjectCollectives(Collectives):
    # With `mpi_param_check 2`: do all ranks call this?
    cdef int compare(self, int function, object op, int root) except -1
