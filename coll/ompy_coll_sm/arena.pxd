# Where communicators get their shared memory from: each process lends *rooms* to those of which it is rank 0.
#
#     slab of rank 0    | room | room | returned | room | never lent: costs no memory ... |
#
# One memfd a process, as large as all its rooms may be together; its members map the whole of it at their first room and keep
# it, so that another communicator costs neither a descriptor nor a mapping.  A room that is given back is lent again, to a
# communicator that needs as much, once every member has left it: a slow one may still be reading.
#
# Long contributions need much room, so the first half of the memory goes to rooms that are as large as they are meant to be,
# and the other half to small ones; beyond that there is none, and the collectives are somebody else's.
#
# Where a memfd can't be had of that size or opened by peers, a room is a segment of its own, which goes with it.
from libc.stdint cimport uint32_t

from ompy.core.doorbell cimport RemoteDoorbell
from ompy.core.segment cimport Segment


cdef class Room:
    cdef Segment segment
    cdef size_t offset                           # in the segment
    cdef readonly size_t size
    cdef readonly size_t chunk                   # bytes of the longest contribution that it has room for
    cdef uint32_t *left                          # members that have gone, of a room that was lent; in the room itself
    cdef uint32_t guests                         # how many there are besides the lender
    cdef bint lent                               # by this process
    cdef bint alone                              # the segment holds nothing else

    cdef inline char *address(self):
        return self.segment.address + self.offset

    # What `enter` needs; shorter than a card.
    cdef bytes card(self)
    # Every member has mapped it.
    cdef int settle(self) except -1
    # This process uses it no more.
    cdef int leave(self) except -1
    # Nobody has ever used it: a member could not map it.
    cdef int withdraw(self) except -1
    cdef int close(self) except -1


# A room for a communicator of so many ranks, its words zeroed, with room for contributions of `chunk` bytes or of fewer; None
# where there is no memory for it.
cdef Room lend(int size, size_t chunk, size_t memory, str backing)
# The room that another process has lent; raises MPIError where it can't be mapped.
cdef Room enter(bytes card)
# The doorbell of a peer, opened once; None where it can't be.
cdef RemoteDoorbell doorbell_of(bytes card)
