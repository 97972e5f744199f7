# The sending half of a node: links, the outgoing queue, and the sends that use them.
#
#     send_app_msg --> capability? --> room in the queue? --> link.transmit            a short message: three looks, one copy
#     acknowledgement, reply ------------------------------'  `- queue --> progress
from libc.stdint cimport int64_t, uint32_t, uint64_t

from ompy.core.progress_source cimport ProgressSource

from ompy_puma.capability cimport Member
from ompy_puma.events cimport Way
from ompy_puma.header cimport Header
from ompy_puma.link cimport Link, Wire
from ompy_puma.outgoing cimport OutgoingQueue
from ompy_puma.placement cimport Placement
from ompy_puma.process cimport Process

# What the sends return.
cpdef enum SendVerdict:
    SENT = 0                    # gone: the body may be changed.  No `sent` will be called.
    OUT_OF_RESOURCE = 1         # the process has too many messages under way: nothing was taken
    QUEUED = 2                  # taken: the body must stay until `process.sent(owner, status)`
    REFUSED = 3                 # no such capability, or no such rank in it: nothing was taken


cdef class Transmission(ProgressSource):
    cdef readonly uint32_t node
    cdef readonly Wire wire
    cdef dict links                              # node -> Link
    cdef OutgoingQueue outgoing
    cdef bint polled                             # registered with the progress engine
    cdef bint engine                             # to be polled by it at all
    cdef uint64_t replies, acknowledgements

    # The sender fills in portal, match_bits, offset, and with the flag RETURN return_*, user_data; everything else is zero
    # or is set here.  `group` and `capability` are indices of capabilities that the process was granted.  `flag`, if not
    # NULL, is counted up when the message is out.
    cdef int send_app_msg(self, Process process, int group, uint32_t rank, Header *header, const char *body,
                          uint64_t length, uint64_t owner, int *flag) except -1
    cdef int send_server_msg(self, Process process, int capability, Header *header, const char *body, uint64_t length,
                             uint64_t owner, int *flag) except -1
    # The program takes memory back: what is queued for the node, and lies there, goes on from a copy as it is at the call.
    # False: the node may be fetching from it, and can't be called back.
    cdef bint set_aside(self, uint32_t node, const char *address, uint64_t length) except -1
    # Everything queued is out, and everything offered was fetched.
    cpdef bint settled(self) except -1

    # -- the kernel's own words
    cdef int reply(self, Process process, const Header *header, const Way *way, Placement *placement) except -1
    # `old`: what a changed word was.
    cdef int acknowledge(self, Process process, const Header *header, const Way *way, const Placement *placement,
                         int64_t old) except -1
    cdef int control(self, uint32_t node, int kind, uint64_t number, int status) except -1

    # -- within
    cdef Link link_to(self, uint32_t node)
    cdef Link reachable(self, uint32_t node)
    cdef int send(self, Process process, Link link, Member *member, uint32_t group, Header *header, const char *body,
                  uint64_t length, uint64_t owner, int *flag) except -1
    cdef int answer(self, Process process, Header *header, const Header *question, const char *body, uint64_t length,
                    const Way *way, const Placement *source) except -1
    cdef bint waits(self) noexcept
    cdef int poll(self) except -1
