# How packets get from node to node.  A Wire is what a node is attached to; a Link is one direction from it to one node.
#
# The Q-Kernel trusts its wire (Puma, 6): packets to one node arrive whole, once, and in the order of the calls.
#
#     loop_wire    nodes of one process; a person steps it                                  tests, study
#     btl_wire     the job's byte transports: an active message a packet, BTL get for long bodies
#
# A wire hands what comes to `QKernel.arrive`.
from libc.stdint cimport uint32_t, uint64_t

cdef class Wire:
    cdef readonly object kernel                  # the QKernel that it serves; set by the kernel
    # The way to a node, made at first contact.  Raises MPIError when nothing leads there.
    cdef Link link(self, uint32_t node)


cdef class Link:
    cdef readonly uint32_t node
    cdef readonly size_t packet_size             # the longest packet
    cdef readonly size_t eager_size              # the longest that is sent whole where the body could be fetched instead
    cdef readonly bint can_fetch                 # peers can read memory that is offered
    cdef readonly size_t fetch_limit             # bytes of one fetch, 0 for no limit
    # The kernel's
    cdef object failure                          # None, or why nothing goes this way any more
    cdef void *first                             # queue of what found no resources
    cdef void *last
    cdef bint pushing

    # A packet in two parts, both free when it returns OK; OUT_OF_RESOURCE: nothing was taken, for now or, on a wire that has
    # broken, for ever.
    cdef int transmit(self, const char *header, size_t header_size, const char *body, size_t body_size) except -1
    # Called while something is queued, outside of everything else: a wire that has broken says so to whom it told of peers that
    # are gone, who then calls `QKernel.peer_lost`.
    cdef int report(self) except -1
    # What a peer needs besides the address to fetch from memory here; None: nothing.  `withdraw` when no peer will.
    cdef bytes offer(self, const void *address, uint64_t length)
    cdef int withdraw(self, bytes handle) except -1
    # The program takes back memory that was offered: the peer's fetches from there fail from now on, until `restore`.  False:
    # the wire can't call it back.
    cdef bint call_back(self, const void *address, uint64_t length) except -1
    cdef int restore(self, const void *address, uint64_t length) except -1
    # Read the peer's memory; OUT_OF_RESOURCE: nothing was taken.  After OK, `kernel.fetched(slot, status)` is called once,
    # perhaps inside, with an error class where the peer is to send it instead.
    cdef int fetch(self, char *local, uint64_t remote, uint64_t length, bytes handle, uint64_t slot) except -1
