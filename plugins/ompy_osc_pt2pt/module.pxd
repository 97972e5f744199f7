# The origin's half, upper part: epochs.
from ompy.core.request cimport Request
from ompy_osc_pt2pt.accesses cimport Accesses


cdef class Pt2pt(Accesses):
    cdef bint fenced                             # between two fences
    cdef list started                            # ranks of `start`, or None
    cdef Request exposure                        # of `post`: complete when all have completed
    cdef char *locked                            # target -> LOCK_EXCLUSIVE, LOCK_SHARED, 0
    cdef bint locked_all, all_unchecked          # by lock_all; without real locks
    cdef set unchecked                           # targets locked with ASSERT_NOCHECK

    cdef int check_target(self, int target) except -1
