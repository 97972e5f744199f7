# The processes on this host with which windows are shared, each met once: its shared heap mapped, its doorbell opened, and
# watched so that its death is noticed.
from ompy.core.doorbell cimport RemoteDoorbell
from ompy.core.reach cimport Reach
from ompy.core.segment cimport Segment
from ompy_osc_sm.mailbox cimport Outbox

cdef enum:
    CARD_SIZE = 192


cdef class Neighbour:
    cdef Reach reach
    cdef Segment heap
    cdef RemoteDoorbell doorbell
    cdef bint by_kernel                          # the kernel reads and writes its memory for us
    cdef Outbox outbox                           # orders to it
    cdef object origin                           # keeps the memory that an outstanding one gets to


# What others need to meet this process; at most CARD_SIZE bytes.  None where it has no shared heap.
cdef bytes own_card()
# The process that the card is of; raises MPIError where its memory can't be mapped.
cdef Neighbour meet(bytes card)
# Those of a window that is freed, with members of other jobs, which may be connected no more; other windows keep theirs.
cdef int forget(list neighbours) except -1
