# The origin's half, upper part: epochs.
from ompy.core.request cimport Request
from ompy_osc_pt2pt.accesses cimport Accesses
from ompy_osc_pt2pt.tally cimport Tally


cdef class Pt2pt(Accesses):
    cdef Request exposure                        # of `post`: complete when all have completed
    cdef bint all_unchecked                      # locked all, without real locks
    cdef set unchecked                           # targets locked with ASSERT_NOCHECK
    cdef bint has_told                           # all ranks, of a fence that an exception has ended
    cdef Request meeting                         # of all ranks, that an exception has ended here

    # Words from each of the ranks.
    cdef int hear(self, Tally tally, list ranks, int operation) except -1
    cdef int meet(self, int operation) except -1
