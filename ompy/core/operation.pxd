# Reduction operations (MPI-4.1, 6.9).  The MPI layer's `Op` is a handle on one of these.
from ompy.core.basic cimport BASIC_TYPES
from ompy.core.reduction_loops cimport Kernel
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


cdef class Reduction(Operation):
    """A predefined operation of MPI-4.1, 6.9.2 and 6.9.4, with one compiled loop for each type it is defined on."""
    cdef Kernel kernels[BASIC_TYPES]             # by `Typemap.basic`; NULL where the operation is not defined
    cdef Kernel backward[BASIC_TYPES]            # the same from the last element on; NULL where there is none

    cdef int reduce_by_copy(self, char *input, char *inout, Py_ssize_t count, Typemap typemap) except -1
    cdef str refusal(self, Typemap typemap)


cdef class Replacement(Operation):
    """What accumulates to windows take besides (MPI-4.1, 12.3.4)."""
    cdef bint replaces


# A predefined operation by its name without MPI_: "SUM", "MAXLOC", ...; KeyError for any other.
cpdef Operation predefined(str name)

# What a function of the program's raises within a reduction is kept, as the other ranks wait for what this one has yet to
# send; whoever had it called raises it at the end.
cdef int failures_kept                           # by all threads
cdef int keep_failure(object error) except -1
# The first that this thread has kept; none are kept of it any more.
cdef int raise_failure() except -1
cdef int forget_failures() except -1
