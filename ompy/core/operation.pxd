# Reduction operations (MPI-4.1, 6.9).  The MPI layer's `Op` is a handle on one of these.
from ompy.core.typemap cimport Typemap

cdef class Operation:
    cdef readonly str name
    cdef readonly bint commutative
    cdef readonly bint predefined

    # `inout[i] = input[i] op inout[i]` for `count` elements, the order MPI gives to user functions.  The predefined
    # ones raise `MPIError(ERR_OP)` for a type that they are not defined on.
    cdef int reduce(self, char *input, char *inout, Py_ssize_t count, Typemap typemap) except -1
    # Whether `reduce` is defined for the type: asked once per collective, before anything is sent.
    cpdef bint defined_on(self, Typemap typemap) except -1
