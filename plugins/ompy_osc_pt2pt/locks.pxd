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
    # Give it back, or wait no more.  Returns the (rank, number) of the orders that are answered now: of those that are granted,
    # and the rank's own where it waited.
    cdef list release(self, int rank)
    # Some ranks are gone, and give nothing back.  Returns the (rank, number) of those who wait for them, and wait no more, and
    # of those who are granted it in their place.
    cdef tuple note_failures(self, gone)
    cdef list grant(self)
