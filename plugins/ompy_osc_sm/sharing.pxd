# How a window comes to be shared: what its ranks tell one another, once, and what each then maps.
#
#     rank 0          takes memory for the words of all, in its heap
#     all             one gather:  card, where the window's memory, the words and its mailbox are, what can't be
#     each            meets those that it has not met before (maps their heaps, opens their doorbells)
#     all             one gather:  has everybody found everything?
#
# Both answers are the same on every rank, so the ranks agree whether this component serves the window.
from libc.stdint cimport int64_t, uint64_t

from ompy_osc_sm.waiting cimport Waits


# Zeroed memory, in the heap where others are to see it; NULL where there is none.
cdef void *room_for(size_t nbytes, bint shared) noexcept
cdef void drop(void *memory) noexcept


cdef class Sharing(Waits):
    cdef char **places                           # where each rank's memory is seen here; NULL: only the kernel gets there
    cdef uint64_t *remote                        # where it is in its own process
    cdef char *words                             # of rank 0: the memory of the states, in its heap, or its own for one rank
    cdef bint opened
    cdef char *owed                              # the targets that have orders through this window which nobody has waited for
    cdef int owed_count
    cdef int64_t patience                        # nanoseconds that an order may wait to be claimed; 0: there are none

    cdef int leave(self) except -1
    # No process will touch this one's memory for an order any more.
    cdef int leave_mailbox(self) except -1
