# Communicators in 13 bits.
#
# A communicator's context is one 64-bit number in all its members, too long for match bits.  Each process numbers its own
# communicators, and a message carries the number that its *receiver* gave, since only the receiver's lists are searched:
#
#     rank 0                                    rank 1
#     comm 0x9003 is my 5                       comm 0x9003 is my 12
#     first message to rank 1: ASK 0x9003 --->  (answered as soon as the communicator is made here)
#                              <--- TELL 0x9003 = 12
#     match bits with context 12 ------------>
#
# MPI_COMM_WORLD and MPI_COMM_SELF are 1 and 2 everywhere and need no question.  A number is used again only after all
# others have been.
from libc.stdint cimport uint16_t, uint64_t

from ompy.core.communicator cimport Communicator

cdef enum:
    UNKNOWN = 0
    ASKED = 0xFFFF

cdef class PortalContext:
    """One communicator, as `Communicator.pml` keeps it."""
    cdef readonly Communicator communicator
    cdef readonly int number                     # ours
    cdef uint16_t *theirs                        # by rank in the remote group: the peer's number, UNKNOWN or ASKED
    cdef dict waiting                            # rank -> sends that wait for the peer's number


cdef class ContextTable:
    cdef list numbered                           # number -> PortalContext or None
    cdef dict named                              # 64-bit context -> PortalContext
    cdef dict early                              # 64-bit context -> nodes that have asked for it too early
    cdef object spare                            # numbers that were used, the longest unused first
    cdef int next                                # the lowest that never was

    # Raises MPIError when all numbers are in use, or the group is too large for 16 bits.
    cdef PortalContext add(self, Communicator comm)
    cdef int drop(self, PortalContext context) except -1
    cdef inline PortalContext at(self, int number):
        return <PortalContext> self.numbered[number]
    # Our number for a context; 0: not made here yet, `node` is noted down.
    cdef int number_for(self, uint64_t context, int node) except -1
