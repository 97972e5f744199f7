# The Q-Kernel: mechanism without policy (Puma, 6).
#
#     send_app_msg --> capability? --> room in the queue? --> link.transmit            a short message: three looks, one copy
#                                                             `- queue --> progress
#     link --> arrive --> process? group? portal? --> matching list --> descriptor --> deposit, or read and reply
#                                                                                       `- acknowledge, tell the owner
#
# It holds no bodies: what arrives goes where a descriptor says, or nowhere; what is queued stays in its sender's memory.
from libc.stdint cimport uint16_t, uint32_t, uint64_t

from ompy.core.progress cimport ProgressSource

from ompy_puma.capability cimport Member
from ompy_puma.events cimport Way
from ompy_puma.header cimport Header
from ompy_puma.incoming cimport Incoming, IncomingTable
from ompy_puma.link cimport Link, Wire
from ompy_puma.outgoing cimport Outgoing, OutgoingQueue
from ompy_puma.placement cimport Placement
from ompy_puma.process cimport DROP_REASONS, DropReason, EventKind, Process

# What the sends return.
cpdef enum SendVerdict:
    SENT = 0                    # gone: the body may be changed.  No `sent` will be called.
    OUT_OF_RESOURCE = 1         # the process has too many messages under way: nothing was taken
    QUEUED = 2                  # taken: the body must stay until `process.sent(owner, status)`
    REFUSED = 3                 # no such capability, or no such rank in it: nothing was taken


cdef class QKernel(ProgressSource):
    cdef readonly uint32_t node
    cdef readonly Wire wire
    cdef list contexts                           # index -> Process; 0 is the PCT's
    cdef dict links                              # node -> Link
    cdef OutgoingQueue outgoing
    cdef IncomingTable incoming
    cdef list stalled                            # slots of records whose fetches found no resources
    cdef bint polled                             # registered with the progress engine
    cdef bint engine                             # to be polled by it at all
    cdef uint64_t drops[DROP_REASONS]            # of packets that reached no process
    cdef uint64_t delivered, bytes_copied, bytes_fetched, replies, acknowledgements, packets

    # The sender fills in portal, match_bits, offset, and with the flag RETURN return_*, user_data; everything else is zero
    # or is set here.  `group` and `capability` are indices of capabilities that the process was granted.  `flag`, if not
    # NULL, is counted up when the message is out.
    cdef int send_app_msg(self, Process process, int group, uint32_t rank, Header *header, const char *body,
                          uint64_t length, uint64_t owner, int *flag) except -1
    cdef int send_server_msg(self, Process process, int capability, Header *header, const char *body, uint64_t length,
                             uint64_t owner, int *flag) except -1
    # Whatever is still on its way into the descriptor's memory is thrown away from now on.  Returns the number of fetches
    # that nothing can stop any more: the memory must stay until they are over.
    cdef int abandon(self, Process process, int descriptor) except -1

    # For wires.
    cdef int arrive(self, const char *packet, size_t length) except -1
    cdef int fetched(self, uint64_t slot, int status) except -1
    # Nothing will come from or go to a node any more: everything under way with it fails.
    cpdef int peer_lost(self, uint32_t node, object error) except -1
    # Everything queued is out, and everything offered was fetched.
    cpdef bint settled(self) except -1

    # -- within
    cdef Link link_to(self, uint32_t node)
    cdef int send(self, Process process, Link link, Member *member, uint32_t group, Header *header, const char *body,
                  uint64_t length, uint64_t owner, int *flag) except -1
    cdef bint waits(self) noexcept
    cdef int poll(self) except -1
    cdef int retry_fetches(self) except -1
    cdef int deliver(self, const Header *header, uint64_t number, uint64_t remote, const char *rest, size_t size) except -1
    cdef int take(self, Process process, const Header *header, const Way *way, Placement *placement, uint64_t number,
                  uint64_t remote, const char *rest, size_t size) except -1
    cdef int piece(self, const char *packet, size_t length) except -1
    cdef int go_on(self, Incoming *record) except -1
    cdef int end(self, Incoming *record, bint whole) except -1
    cdef int whole(self, Process process, const Header *header, const Way *way, Placement *placement) except -1
    cdef int reply(self, Process process, const Header *header, const Way *way, Placement *placement) except -1
    cdef Link reachable(self, uint32_t node)
    cdef int answer(self, Process process, Header *header, const Header *question, const char *body,
                    uint64_t length, const Way *way, const Placement *source) except -1
    cdef int control(self, uint32_t node, int kind, uint64_t number, int status) except -1
    cdef int drop(self, DropReason reason, Process process, const Way *way, const Header *header, uint64_t number) except -1
