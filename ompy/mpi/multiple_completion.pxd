# How several operations are completed by one call (MPI-4.1, 3.7.5): some of them are chosen, and then settled or looked at.
from ompy.core.request cimport Request as CoreRequest
from ompy.core.status cimport StatusRecord

cdef enum:
    NONE_COMPLETE = -1


cdef class Selection:
    cdef list requests                           # all that were given to the call

    # Choose.  An index is that of a complete operation, UNDEFINED when none is active, else NONE_COMPLETE.
    cdef Py_ssize_t first_complete(self) except -2
    cdef Py_ssize_t wait_any(self) except -2
    cdef Py_ssize_t test_any(self) except -2
    cdef int wait_all(self) except -1
    cdef bint test_all(self) except -1
    # Indices of all that are complete; None when none is active.
    cdef list complete_ones(self, bint block)
    # The request that stands for all of them on the job board.
    cdef CoreRequest shown(self)

    # Settle what was chosen: statuses, objects where `load` says so, and errors once all are settled.
    cdef object settle_any(self, Py_ssize_t index, StatusRecord *status)
    cdef list settle_all(self, object statuses, bint load)
    # The same where nobody wants a status or an object.
    cdef int settle_quietly(self) except -1
    cdef list settle_some(self, list indices, object statuses, bint load)

    # Fill in the statuses of what was chosen; the requests stay as they are.
    cdef int look_any(self, Py_ssize_t index, StatusRecord *status) except -1
    cdef int look_at(self, object indices, object statuses) except -1
