# How packets get from node to node.  A Wire is what a node is attached to; a Link is one direction from it to one node.
#
# The Q-Kernel trusts its wire (Puma, 6): packets to one node arrive whole, once, and in the order of the calls.
#
#     loop_wire    nodes of one process; a person steps it                                  tests, study
#     btl_wire     the job's byte transports: an active message a packet, BTL get for long bodies
from libc.stdint cimport uint32_t, uint64_t

cdef class Wire:
    cdef readonly object kernel                  # the QKernel that hands it packets and takes them
    # The way to a node, made at first contact.  Raises MPIError when nothing leads there.
    cdef Link link(self, uint32_t node)


cdef class Link:
    cdef readonly uint32_t node
    cdef readonly size_t packet_size             # the longest packet
    cdef readonly size_t eager_size              # up to here a message goes as one packet, beyond the body is fetched
    cdef readonly bint can_fetch
    cdef readonly object failure                 # None, or why nothing goes this way any more
    cdef void *first                             # queue of what found no resources
    cdef void *last

    # A packet in two parts, both free when it returns OK; OUT_OF_RESOURCE: nothing was taken.
    cdef int transmit(self, const char *header, size_t header_size, const char *body, size_t body_size) except -1
    # What a peer must know to fetch from memory here, or None: nothing.
    cdef bytes offer(self, size_t address, uint64_t length)
    cdef int withdraw(self, bytes handle) except -1
    # Read a peer's memory; `kernel.fetched(slot, status)` is called once, perhaps inside.
    cdef int fetch(self, char *local, uint64_t remote, uint64_t length, bytes handle, uint64_t slot) except -1
