# One window: epochs, and what closes them.
from libc.stdint cimport uint32_t, uint64_t

from ompy_osc_sm.accesses cimport Accesses


cdef class SmWindow(Accesses):
    cdef uint64_t met                            # fences that this rank has left
    cdef list exposed                            # ranks of `post`, or None
    # Counts by rank, in one block of memory.
    cdef uint32_t *posts                         # posts to an origin
    cdef uint32_t *starts                        # posts of a target's that starts have used up
    cdef uint32_t *completes                     # completes towards a target
    cdef uint32_t *waits                         # completes of an origin's that waits have used up
    cdef char *unchecked                         # targets locked with ASSERT_NOCHECK
    cdef bint all_unchecked

    cdef int meet(self, int operation) except -1
    cdef int take_lock(self, int target, int kind) except -1
    cdef int await_count(self, uint32_t *word, uint32_t value, int peer, int operation) except -1
