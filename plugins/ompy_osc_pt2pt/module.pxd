# The origin's half, upper part: epochs.
from ompy.core.request cimport Request
from ompy_osc_pt2pt.accesses cimport Accesses


cdef class Pt2pt(Accesses):
    cdef Request exposure                        # of `post`: complete when all have completed
    cdef bint all_unchecked                      # locked all, without real locks
    cdef set unchecked                           # targets locked with ASSERT_NOCHECK
