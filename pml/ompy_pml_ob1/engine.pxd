# What the requests of both sides share: names for requests on the wire, first contact, control messages, retries.
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.convertor cimport Convertor
from ompy.core.message_request cimport MessageRequest
from ompy.core.proc cimport Proc
from ompy.core.progress_source cimport ProgressSource
from ompy.core.typemap cimport Typemap
from ompy.mca.bml cimport Bml, PeerRoutes, Route

from ompy_pml_ob1.matching cimport Matching

cdef class Transfer(MessageRequest):
    """A request that may need several messages, some of which may have to wait for resources."""
    cdef Engine engine
    cdef Matching matching
    cdef PeerRoutes routes
    cdef uint64_t number            # name on the wire, 0 while there is none
    cdef bint queued                # stands in the engine's retry queue
    # Send what can be sent now; OUT_OF_RESOURCE when something had to stay.
    cdef int push(self) except -1
    # The same from within progress, again when there is room; what raises fails the transfer, not whoever polls.
    cdef int advance(self) except -1
    # A header of its that had to wait has left, or (error not None) can't.
    cdef int header_left(self, Transfer header, object error) except -1
    # Has it a place in the order of messages to the peer, after that one, which nobody has heard of yet?
    cdef bint is_behind(self, Matching matching, int peer, uint32_t sequence) noexcept
    cdef int move_up(self) except -1


cdef struct Scratch:
    size_t size                     # bytes that follow
    size_t spare


cdef class Engine(ProgressSource):
    cdef readonly Bml bml
    cdef readonly size_t send_pipeline_depth, rdma_pipeline_depth
    cdef readonly bint use_get, use_put
    cdef readonly bint checksum     # of data that is read or written in place; messages are checked by `checked.pyx`
    cdef readonly str name          # of the PML that this is the engine of
    cdef list slots                 # number & 0xFFFFFFFF -> Transfer or None
    cdef list free_slots
    cdef uint64_t generation        # high half of the numbers: a late message finds no stranger in its slot
    cdef dict waiting               # PeerRoutes -> deque of Transfer, in the order of their sequence numbers
    cdef readonly unsigned long long retries      # times that a transfer found no resources
    cdef list withdrawn             # (address, bytes) of receives whose puts were called back and may still come
    cdef bint has_waiting           # so that the fast path need not ask Python
    cdef Scratch *scratch           # where non-contiguous eager payload is packed; NULL: taken, or none was made
    cdef Convertor packer

    cdef int register_transfer(self, Transfer transfer) except -1
    cdef int unregister_transfer(self, Transfer transfer) except -1
    cdef Transfer enrolled(self, uint64_t number)
    # The routes to a rank; finds them at first contact.  Raises when the peer has failed or nothing reaches it.
    cdef PeerRoutes contact(self, Matching matching, int rank)
    # Have it pushed again, after what waits for the same peer.
    cdef int retry(self, Transfer transfer) except -1
    # A place in the order that no message has after all: what waits behind it moves up, so that the peer misses none.
    cdef int give_back(self, Matching matching, int peer, uint32_t sequence, PeerRoutes routes) except -1
    # Does anything wait for resources towards this peer?  What is sent now has its place behind it.
    cdef bint holds_back(self, PeerRoutes routes) except -1
    cdef int try_again(self, object queue) except -1
    # Send a header-only message of a transfer's.  Returns None, or, when there are no resources, what is queued in its place:
    # the transfer is given it by `header_left` later.
    cdef Transfer control(self, Transfer transfer, const char *header, size_t length)
    # Memory for `size` bytes, the caller's until it is returned: whatever sends meanwhile takes other memory.
    cdef char *take_scratch(self, size_t size) except NULL
    cdef void return_scratch(self, char *memory) noexcept
    # A whole message of typed data in a row, in such memory.
    cdef char *packed(self, char *address, Py_ssize_t count, Typemap typemap) except NULL


cdef Route route_with(PeerRoutes routes, int flag)
# What a PUT header calls it.
cdef bytes route_name(Route route)
