# Communicators as numbers of their sources.
#
# A communicator's context is one 64-bit number in all its members, too long for a tag.  Each process numbers the sources of its
# own communicators, and a message carries the number that its *receiver* gave to its sender, since only the receiver matches:
#
#     rank 0                                              rank 1
#     comm 0x9003 of 4: 16 .. 19 are its sources          comm 0x9003: 20 .. 23
#     first message to rank 1: ASK 0x9003 --->            (answered as soon as the communicator is made here)
#                              <--- TELL 0x9003 = 20
#     tags with 20, for rank 0 of it -------->
#
# MPI_COMM_WORLD begins at 0 everywhere and needs no question.  Numbers are used again only after all others have been.
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.communicator cimport Communicator

cdef enum:
    UNKNOWN = 0xFFFFFFFF
    ASKED = 0xFFFFFFFE


cdef class Arrival:
    """A message that no receive has wanted yet, here in our memory."""
    cdef int source, tag
    cdef uint64_t length                         # the message's
    cdef uint64_t number                         # its sender's, of an announced one; 0 for an eager one
    cdef char *body                              # of `length` bytes, or NULL: it is still at its sender


cdef class OfiContext:
    """One communicator, as `Communicator.pml` keeps it."""
    cdef readonly Communicator communicator
    cdef readonly uint32_t base                  # ours: of source 0
    cdef readonly int bits                       # so many number its sources
    cdef uint32_t *theirs                        # by rank in the remote group: the peer's base, UNKNOWN or ASKED
    cdef dict waiting                            # rank -> sends that wait for the peer's base
    cdef list posted                             # receives that we match, the first one first
    cdef list arrived                            # Arrivals, the oldest first

    # The place of the oldest arrival that a receive of these wishes takes, or -1.
    cdef Py_ssize_t find(self, int source, int tag) noexcept
    # The place of the first receive here that wants a message, or -1.
    cdef Py_ssize_t wanting(self, int source, int tag) noexcept


cdef class ContextTable:
    cdef readonly uint64_t numbers               # how many there are
    cdef uint64_t next                           # the lowest that never was in use
    cdef dict named                              # 64-bit context -> OfiContext
    cdef dict blocks                             # (bits, base >> bits) -> OfiContext
    cdef dict spare                              # bits -> bases that were in use, the longest unused first
    cdef set widths                              # all `bits` in use
    cdef dict early                              # 64-bit context -> ranks that have asked for it too early

    # Raises MPIError when no numbers are left.
    cdef OfiContext add(self, Communicator comm)
    cdef int drop(self, OfiContext context) except -1
    # Whose the source of that number is, or None.
    cdef OfiContext at(self, uint32_t who)
