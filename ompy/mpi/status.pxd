# The program's view of a finished receive (MPI-4.1, 3.2.5).
from ompy.core.status cimport StatusRecord

cdef class Status:
    cdef object __weakref__
    cdef StatusRecord record


# Where a call is to put its status: inside the program's object, or NULL for None.
cdef inline StatusRecord *record_of(Status status) noexcept:
    return NULL if status is None else &status.record
