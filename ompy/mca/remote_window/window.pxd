# One window of a component whose ranks access one another's memory remotely: epochs, and what closes them.
from libc.stdint cimport int64_t

from ompy.core.request cimport Request
from ompy.mca.remote_window.accesses cimport Accesses


cdef enum Tally:
    POSTED = 1                                   # the words of a state behind `holders`, in their order
    COMPLETED = 2


cdef class RemoteWindow(Accesses):
    cdef list exposed                            # ranks of `post`, or None
    cdef list starts                             # target -> its posts as counted when the last start was over
    cdef list waits                              # origin -> its completes, when the last wait was
    cdef set unchecked                           # targets locked with ASSERT_NOCHECK
    cdef bint all_unchecked
    cdef Request meeting                         # of all ranks, which an exception has interrupted; else None

    cdef int meet(self, int operation) except -1
    cdef int take_lock(self, int target, int kind) except -1
    cdef bint pass_over(self, int target, const int64_t *words) except -1
    cdef int expect_turn(self, int target, int64_t *holders, int64_t before, int64_t unchanged) except -1
    cdef int give_lock_back(self, int target, int kind) except -1
    # How often a rank has posted, or completed, towards this one; a component may count in another place.
    cdef int64_t *count_of(self, Tally tally, int rank) noexcept
    # One more of this rank's, there.
    cdef int count_up(self, Tally tally, int rank) except -1
    # Until there are more than `value`.
    cdef int await_count(self, Tally tally, int64_t value, int peer, int operation) except -1
