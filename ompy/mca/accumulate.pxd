# What accumulates do to the target's memory, wherever a component does it: at the target or at the origin.
# Nothing here is atomic: the caller sees to it that one at a time is at work on a target's memory.
from ompy.core.operation cimport Operation
from ompy.core.typemap cimport Typemap
from ompy.mca.osc cimport Access

cdef Operation REPLACE, NO_OP

# ERR_OP or ERR_TYPE unless the operation makes sense for the two types (MPI-4.1, 12.3.4).
cpdef int check_operation(Access access) except -1
# Combine packed data with `count` elements at `place`.
cdef int combine(Operation operation, const char *data, char *place, Py_ssize_t count, Typemap typemap) except -1
# The same where both sides are packed: `count` of a predefined datatype's.
cdef int combine_packed(Operation operation, const char *data, char *elements, Py_ssize_t count, Typemap basic) except -1
# Whether the elements are the same, in which case `new` is written over them; both are packed.
cdef bint swap_if_equal(const char *compare, const char *new, char *place, Typemap typemap) except -1
