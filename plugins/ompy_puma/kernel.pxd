# The Q-Kernel: mechanism without policy (Puma, 6).
#
#     link --> arrive --> process? group? portal? --> matching list --> descriptor --> deposit, read and reply, or change
#                                                                                       `- acknowledge, tell the owner
#
# Sending is in `transmission`.  The kernel holds no bodies: what arrives goes where a descriptor says, or nowhere; what is
# queued stays in its sender's memory, unless that is wanted back (`set_aside`).
from libc.stdint cimport uint32_t, uint64_t

from ompy_puma.events cimport Way
from ompy_puma.header cimport Header
from ompy_puma.incoming cimport Incoming, IncomingTable
from ompy_puma.placement cimport Placement
from ompy_puma.process cimport DROP_REASONS, DropReason, Process
from ompy_puma.transmission cimport Transmission


cdef class QKernel(Transmission):
    cdef list contexts                           # index -> Process; 0 is the PCT's
    cdef IncomingTable incoming
    cdef list stalled                            # slots of records whose fetches found no resources
    cdef uint64_t drops[DROP_REASONS]            # of packets that reached no process
    cdef uint64_t delivered, bytes_copied, bytes_fetched, packets

    # Whatever is still on its way into the descriptor's memory is thrown away from now on.  Returns the number of fetches
    # and replies that nothing can stop any more: the memory must stay until they are over.
    cdef int abandon(self, Process process, int descriptor) except -1

    # A process takes memory of its single blocks back from one node: what comes from there is dropped as by an invalid
    # descriptor, until `process.restore`; what is on its way into it is thrown away, and what was to be sent goes on from a
    # copy.  Replies to the process's own questions are no concern of this.  False, and nothing has changed for the node: it
    # may be fetching from that memory, or a fetch be writing to it.
    cdef bint withhold(self, Process process, uint32_t node, const char *address, uint64_t length) except -1

    # For wires.
    cdef int arrive(self, const char *packet, size_t length) except -1
    cdef int fetched(self, uint64_t slot, int status) except -1
    # Nothing will come from or go to a node any more: everything under way with it fails.
    cpdef int peer_lost(self, uint32_t node, object error) except -1

    # -- within
    cdef int retry_fetches(self) except -1
    cdef int deliver(self, const Header *header, uint64_t number, uint64_t remote, const char *rest, size_t size) except -1
    cdef int take(self, Process process, const Header *header, const Way *way, Placement *placement, uint64_t number,
                  uint64_t remote, const char *rest, size_t size) except -1
    cdef int change(self, Process process, const Header *header, const Way *way, Placement *placement, uint64_t number,
                    const char *rest, size_t size) except -1
    cdef int piece(self, const char *packet, size_t length) except -1
    cdef int go_on(self, Incoming *record) except -1
    cdef int end(self, Incoming *record, bint whole) except -1
    cdef int whole(self, Process process, const Header *header, const Way *way, Placement *placement) except -1
    cdef int drop(self, DropReason reason, Process process, const Way *way, const Header *header, uint64_t number) except -1
