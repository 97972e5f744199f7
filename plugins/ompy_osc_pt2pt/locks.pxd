# The locks of one rank's window memory, first come, first served.
#
#     holders  A(shared) B(shared)     waiting  C(exclusive) D(shared)
#
# D waits behind C although it could share with A and B: C must get its turn.

cdef class LockQueue:
    cdef set holders                             # ranks
    cdef bint exclusive                          # the one holder does not share
    cdef list waiting                            # (rank, number of its order, whether it shares)

    # Whether the lock was granted; else it waits.
    cdef bint ask(self, int rank, int number, bint shared) except -1
    # Returns the (rank, number) of those that are granted now; None when the rank holds no lock.
    cdef list release(self, int rank)
