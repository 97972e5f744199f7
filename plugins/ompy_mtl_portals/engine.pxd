# What sends and receives share: the process that the kernel knows, its lists, credit, and words between MTLs.
#
#     portal table
#     0 RECEIVE ----> posted -> posted -> ... -> short catch-all -> long catch-all -> end       (MPI on portals, figure 1)
#                       |                           |  header, body    |  header
#                       | too long                  v                  v
#                       |                        [    one heap, in order of arrival    ]
#                       `-> short overflow ---------^                  ^
#                           long overflow -----------------------------'
#     1 ACKNOWLEDGE -> an entry for each send that waits for word                               (figure 2)
#     2 READ --------> an entry for each long send: its memory
#     3 CONTROL -----> contexts and credit
#
# The overflow entries stand in no list; a receive whose memory is made at match time leads there by its too-long link, and
# finds its message in the heap.
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.communicator cimport Communicator
from ompy.mca.bml cimport Bml
from ompy.mca.mtl cimport MtlSend

from ompy_mtl_portals.context cimport ContextTable, PortalContext
from ompy_mtl_portals.flow cimport Peer
from ompy_puma.descriptor cimport Buffer
from ompy_puma.header cimport Header
from ompy_puma.heap cimport Letter
from ompy_puma.kernel cimport QKernel
from ompy_puma.process cimport Process

cdef class Engine(Process):
    cdef QKernel qkernel
    cdef readonly Bml bml
    cdef int capability                          # of the job's processes
    cdef readonly uint32_t nodes
    cdef readonly uint64_t short_limit           # bytes of body that go by the short protocol
    cdef uint64_t allowance[2]                   # by lane: bytes of a peer's heap that are ours
    cdef Peer *peers                             # by node
    cdef ContextTable contexts
    cdef dict stalled                            # (node, lane) -> deque of sends that wait for credit or for the kernel
    cdef object unsent                           # deque of (node, header) of words that found no room in the kernel
    cdef uint64_t serial                         # makes the names of requests unique
    # the heap and its four entries
    cdef char *heap
    cdef int heap_descriptor
    cdef int short_catch_all, long_catch_all, short_overflow, long_overflow
    cdef Buffer control_buffer
    cdef readonly uint64_t unexpected, pulled, discarded, stalls

    cdef int node_of(self, Communicator comm, int rank) except -1
    cdef Peer *peer(self, int node) except NULL
    # Give heap space back to whoever paid for it.
    cdef int give_back(self, int node, int tag, uint64_t size) except -1
    cdef int release(self, Letter *letter) except -1
    # Put a header on its way without a body; it waits here when the kernel has no room.
    cdef int word(self, int node, Header *header) except -1
    cdef int say(self, int node, int portal, uint64_t bits, int what) except -1
    cdef int control(self, int node, int what, uint64_t argument, int detail) except -1
    # Ask a peer for its number of a communicator; the send waits for it.
    cdef int ask(self, PortalContext context, int rank, MtlSend request) except -1
    cdef int told(self, const Header *header) except -1
    cdef int stall(self, int node, int tag, MtlSend request) except -1
    cdef int push(self, int node, int lane) except -1
    cdef int push_all(self) except -1
    # A send's turn has come: OK, or OUT_OF_RESOURCE when it must wait.
    cdef int launch(self, MtlSend request) except -1
    # The error of who found too few, having got one of them perhaps; -1: it has not.
    cdef object no_room(self, int entry, int descriptor)
    cdef int first(self) noexcept                # entry of the receive portal's list
    cdef int fail_stalled(self, int node, object error) except -1
