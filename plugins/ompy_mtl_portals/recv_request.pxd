# The receiver's half of the protocols (MPI on portals, figures 3 to 7).
#
#     post      an entry that is not yet in the list; search the heap; only when it holds nothing, into the list: one step
#
#     deposited     the message came straight into the memory                           long: the kernel has acknowledged
#     too long      (memory is made at match time) it is in the heap, through an overflow entry
#     in the heap   short: copied out of it
#                   long: its header alone.  The entry's bits change to accept a REPLY, the sender's memory is read
#
# A receive that is abandoned once it was matched keeps its entry until the message is over: what comes is thrown away, and the
# sender has its heap space and its word all the same.
from libc.stdint cimport uint64_t

from ompy.mca.mtl cimport MtlRecv
from ompy.mca.pml cimport Message

from ompy_mtl_portals.context cimport PortalContext
from ompy_mtl_portals.engine cimport Engine
from ompy_puma.descriptor cimport Buffer
from ompy_puma.header cimport Header
from ompy_puma.heap cimport Letter
from ompy_puma.match_list cimport MatchEntry


# What a receive or a probe asks of match bits.
cdef void aim(MatchEntry *entry, PortalContext context, int source, int tag) noexcept


cdef class TakenMessage(Message):
    """A message that a matched probe took out of the heap."""
    cdef Letter *letter                          # a copy of ours
    cdef int node


cdef class PortalsRecv(MtlRecv):
    cdef Engine engine
    cdef PortalContext context
    cdef int entry                               # -1: none
    cdef Buffer arriving
    cdef bint pulling
    cdef int node                                # who is pulled from
    # of the message being received
    cdef bint synchronous
    cdef uint64_t sender                         # its match bits at ACKNOWLEDGE and READ

    cdef int post(self) except -1
    cdef bint withdraw(self) except -1
    cdef int forget(self) except -1
    cdef int refund(self, const Header *header) except -1
    # A message that lies in the heap, or in a copy of it, is this request's.
    cdef int take(self, Letter *letter, bint listed) except -1
    cdef int pull(self, const Header *header) except -1
    cdef int note(self, const Header *header) except -1
    cdef int acknowledge(self) except -1
    cdef int link(self) except -1
    cdef int unlink(self) except -1
    # Events.
    cdef int matched(self) except -1
    cdef int whole(self, const Header *header) except -1
    cdef int lost(self, const Header *header) except -1
