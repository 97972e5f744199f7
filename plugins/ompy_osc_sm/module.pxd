# One window: epochs, and what closes them.
from libc.stdint cimport uint64_t

from ompy_osc_sm.accesses cimport Accesses


cdef class SmWindow(Accesses):
    cdef uint64_t met                            # fences that this rank has left
    cdef char *unchecked                         # targets locked with ASSERT_NOCHECK
    cdef bint all_unchecked

    cdef int meet(self, int operation) except -1
    cdef int take_lock(self, int target, int kind) except -1
