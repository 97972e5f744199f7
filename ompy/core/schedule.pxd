# A collective as a list of rounds that the progress engine advances.
#
# An algorithm writes its sends, receives, local copies and reductions into a schedule once; run blocking, non-blocking
# or again and again (persistent), it is the same schedule.  Steps of one round run at the same time, a round begins
# when the one before is complete:
#
#     round 0   recv(1)  recv(2)          binomial reduce on rank 0 of 4
#     round 1   reduce   reduce
#     round 2   ...
from ompy.core.communicator cimport Communicator
from ompy.core.operation cimport Operation
from ompy.core.request cimport Request
from ompy.core.typemap cimport Typemap

cdef class Schedule(Request):
    cdef readonly list rounds
    cdef readonly list memory                    # scratch buffers, alive as long as the schedule

    cpdef int send(self, size_t address, Py_ssize_t count, Typemap typemap, int peer) except -1
    cpdef int recv(self, size_t address, Py_ssize_t count, Typemap typemap, int peer) except -1
    cpdef int copy(self, size_t source, Py_ssize_t source_count, Typemap source_type,
                   size_t target, Py_ssize_t target_count, Typemap target_type) except -1
    cpdef int reduce(self, size_t input, size_t inout, Py_ssize_t count, Typemap typemap, Operation operation) except -1
    cpdef int next_round(self) except -1
    # Scratch memory for `count` elements, laid out as the typemap wants it; returns the address to use with it.
    cpdef size_t scratch(self, Py_ssize_t count, Typemap typemap) except? 0
