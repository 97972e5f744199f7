# An ordered set of processes (MPI-4.1, 7.3.1).  Immutable; the MPI layer's `Group` is a handle on one of these.
from ompy.core.proc cimport Proc

cdef class Group:
    cdef readonly int size
    cdef readonly int rank                       # of this process, or UNDEFINED
    cdef readonly bint spans_jobs                # some member is of another job than this process
    cdef int *members                            # rank -> index in the ProcTable

    cdef Proc proc(self, int rank)               # made at first use; no range check
    cpdef int rank_of(self, int index)           # rank of a proc by its table index, or UNDEFINED


cpdef Group make_group(object indices)           # any sequence of table indices; raises on a repeated one
# The members of these ranks of a group, each but once; the group itself where that is all of them in order.
cdef Group subgroup(Group group, int size, const int *ranks)
