# Messages between the ranks of one communicator, straight on portals (MPI on portals, figures 8 and 10).
#
#     0 SHORT   [single block] -> ... -> [this communicator's heap] -> [another's] -> end
#                `- put in front when its owner is there before the message; else that is in the heap
#     1 LONG    [single block] -> ...      only ever sent to by one who was told that it is there
#     2 READY   [nothing]      -> ...      "my block for this collective is there": its match bits are noted
#
#     63                              16 15      6 5     0
#     |        communicator            | sequence | phase |       match bits; the entry names the sender as well
#
# So collectives that overlap are kept apart: on two communicators by the first field, on one by the second.  A rank that
# only sends (the root of a broadcast, the leaf of a reduction) may run ahead of the others by `drift` collectives; then all
# meet.  That bounds what a heap must hold.
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.communicator cimport Communicator
from ompy.core.request cimport Request
from ompy.mca.bml cimport Bml

from ompy_puma.heap cimport Letter
from ompy_puma.kernel cimport QKernel
from ompy_puma.process cimport Event, Process

cdef enum:
    PORTAL_SHORT = 0
    PORTAL_LONG = 1
    PORTAL_READY = 2
    PORTALS = 3


cdef class Station(Process):
    """The process of coll/portals: one for all communicators."""
    cdef QKernel qkernel
    cdef int capability
    cdef dict exchanges                          # 64-bit context -> Exchange


cdef class Sending:
    """A message that the kernel has queued: until it is out, its memory is in use."""
    cdef uint64_t out
    cdef int status                              # the error class that it ended with


cdef class Exchange:
    cdef readonly Communicator comm
    cdef Station station
    cdef Request shown                           # for the job board
    cdef readonly uint64_t short_limit
    cdef uint64_t sequence                       # of the collective, on all ranks the same
    cdef int ahead                               # collectives that this rank may now be ahead of another
    cdef int users                               # modules that serve the communicator
    cdef char *heap
    cdef int heap_descriptor, heap_entry, ready_entry
    cdef uint64_t *ready                         # by rank: the match bits of the block that it has ready for us, or 0
    cdef Sending spare                           # for the next message

    cdef int node(self, int rank) noexcept
    cdef uint64_t bits(self, int phase) noexcept
    # A short message: it waits in the peer's heap if the peer is late.
    cdef int send(self, int rank, int phase, const char *data, uint64_t length) except -1
    cdef int recv(self, int rank, int phase, char *data, uint64_t length) except -1
    cdef int take_letter(self, Letter *letter, int rank, char *data, uint64_t length) except -1
    # A long one: waits until the peer's block is there.
    cdef int send_long(self, int rank, int phase, const char *data, uint64_t length) except -1
    cdef int recv_long(self, int rank, int phase, char *data, uint64_t length) except -1
    # A block that one peer writes piece by piece, at offsets of its choice; returns the entry.
    cdef int open_block(self, int rank, int phase, char *data, uint64_t length) except -1
    cdef uint64_t pieces(self, int entry) noexcept
    cdef int await_pieces(self, int entry, int rank, uint64_t count) except -1
    cdef int close_block(self, int entry) except -1
    cdef int await_ready(self, int rank, int phase) except -1
    cdef int transmit(self, int portal, int rank, int phase, const char *data, uint64_t length, uint64_t offset) except -1
    cdef int entry_for(self, int rank, int phase, char *data, uint64_t length, int options) except -1
    cdef int make_entry(self, int rank, int phase, char *data, uint64_t length, int options) except -1
    cdef int drop_entry(self, int entry) except -1
    cdef int until(self, uint64_t *word, uint64_t goal, bint exactly, int rank) except -1
    # After an exception: the kernel looks at the memory of a message no more.
    cdef int take_back(self, Sending sending, int rank, const char *data, uint64_t length) except -1


cdef Station station_over(Bml bml, uint32_t node)
# The one exchange of a communicator; each user of it closes it once.
cdef Exchange exchange_for(Communicator comm, Bml bml, uint32_t node, uint64_t short_limit, int drift)
