# One window: epochs, and what closes them.
from libc.stdint cimport int64_t

from ompy_osc_rdma.accesses cimport Accesses


cdef class RdmaWindow(Accesses):
    cdef list exposed                            # ranks of `post`, or None
    cdef list starts                             # target -> posts that starts have used up
    cdef list waits                              # origin -> completes that waits have used up
    cdef set unchecked                           # targets locked with ASSERT_NOCHECK
    cdef bint all_unchecked

    cdef int take_lock(self, int target, int kind) except -1
    cdef int give_lock_back(self, int target, int kind) except -1
    # Until rank `peer` has written more than `value` into a word of this rank's desk.
    cdef int await_count(self, int word, int64_t value, int peer, int operation) except -1
