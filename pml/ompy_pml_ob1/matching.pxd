# Matching: which receive takes which message (MPI-4.1, 3.5).
#
# A receive names a source and a tag, each or both of them wild.  Both sides are kept in queues hashed by the pair, the
# wildcard being a value like any other, so that no queue is ever searched:
#
#     posted      one queue a pair.  A message (s, t) looks at the heads of (s,t) (s,*) (*,t) (*,*) and takes the oldest.
#     unexpected  each message stands in all four queues that a receive may ask for; it takes the head of the one.
#
# The cost of a match is at most four look-ups, whatever the depth.  A queue that has become empty stays in its table, since
# the same pair is likely to come again, until the table is full.  A table has no memory until its first queue: many
# communicators are made and freed without one.
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport ANY_SOURCE, ANY_TAG
from ompy.core.request cimport Request
from ompy.core.status cimport StatusRecord
from ompy.mca.bml cimport PeerRoutes

from ompy_pml_ob1.header cimport Envelope

# Released receives that are kept for the next ones: making one costs as much as matching a message.
cdef enum:
    MOST_UNUSED = 128

cdef struct Queue

cdef struct Posted:
    void *request                   # the RecvRequest, which this counts as a reference to
    Posted *previous
    Posted *next
    Queue *queue                    # NULL when not posted
    uint64_t serial

# A blocking receive while it waits.  A short message that it takes goes straight to its memory, without a queue or a
# request; for a long one a request is made that carries on.  A second thread that waits uses a request from the start.
cdef struct Direct:
    int source
    int tag
    uint64_t serial
    size_t address
    Py_ssize_t count
    size_t capacity                 # bytes
    PyObject *typemap               # the caller's; contiguous
    PyObject *allocate              # makes the memory when the message is here, or NULL; the caller's
    PyObject *block                 # what it has made, with a reference
    int over                        # nothing is left to be done, or the request does it
    PyObject *request               # that carries on, with a reference; NULL: the message is there
    StatusRecord status

cdef struct Unexpected

cdef struct Link:
    Unexpected *message
    Link *previous
    Link *next
    Queue *queue                    # NULL when not linked

cdef struct Unexpected:
    Link links[4]
    size_t length                   # bytes of the copy that follows: header, then payload
    size_t room                     # for so many; a long one is kept when its message has been taken

cdef struct Queue:
    int source
    int tag
    void *head
    void *tail
    Queue *chain                    # next in the bucket, or in the list of spare queues

cdef struct QueueTable:
    Queue **buckets
    size_t bucket_count
    size_t used
    Queue *spare

cdef struct Peer:
    void *routes                    # PeerRoutes, borrowed from the Proc; NULL before first contact
    uint32_t next_sequence          # of the next message to it; comes round when no memory could hold what is queued
    uint32_t expected_sequence      # of the next message from it
    uint8_t failed


cdef inline bint wants(Direct *direct, int source, int tag) noexcept nogil:
    return ((direct.source == source or direct.source == ANY_SOURCE)
            and (direct.tag == tag or (direct.tag == ANY_TAG and tag >= 0)))


cdef inline char *message_bytes(Unexpected *message) noexcept nogil:
    return <char *> message + sizeof(Unexpected)


cdef inline Envelope *message_envelope(Unexpected *message) noexcept nogil:
    return <Envelope *> (<char *> message + sizeof(Unexpected))


cdef class Matching:
    """The queues of one communicator."""
    cdef readonly Communicator communicator
    cdef Peer *peers
    cdef QueueTable posted
    cdef QueueTable unexpected
    cdef uint64_t serial
    cdef Direct *direct             # of the thread that waits in a blocking receive, or NULL
    cdef Request shown              # stands for it on the job board; made at the first wait
    cdef readonly size_t posted_count, unexpected_count
    cdef size_t wild_source_count, wild_tag_count, wild_both_count
    cdef dict failures              # source or ANY_SOURCE -> why nothing more can come from there; mostly None
    cdef dict early                 # (source, sequence) -> bytes of a message that overtook another; mostly None
    cdef PyObject *unused[MOST_UNUSED]           # RecvRequests of this communicator, with a reference to each
    cdef int unused_count
    cdef bint closed                # the communicator is gone: nothing is kept for it any more

    cdef PeerRoutes routes(self, int rank)
    cdef Request waiting(self)      # `shown`
    # Give back what was kept for the next receives.
    cdef int close(self) except -1
    cdef int post(self, Posted *posted, Request request, int source, int tag) except -1
    cdef int withdraw(self, Posted *posted) except -1
    # The oldest posted receive for an incoming envelope; NULL when there is none.
    cdef Posted *find_posted(self, int source, int tag) noexcept
    # Take it out; the reference to its request is the caller's then.
    cdef void unpost(self, Posted *posted) noexcept
    # Keep a message (header and payload are copied) for which no receive is posted.
    cdef int store(self, const char *data, size_t length) except -1
    # The oldest message that a receive of this source and tag may take, left where it is; NULL when there is none.
    cdef Unexpected *find(self, int source, int tag) noexcept
    cdef void remove(self, Unexpected *message) noexcept

    # Nothing more comes from a peer.  Receives from any source fail too if the peer's message may have been the one that
    # they wait for (`ambiguous`), or when no other peer is left.
    cdef int fail_source(self, int source, object error, bint ambiguous) except -1
    cdef bint is_alone(self) noexcept
    # Raises the error of a source, or of ANY_SOURCE, that has failed.
    cdef int check_source(self, int source) except -1

    cdef void free_unexpected(self) noexcept
    cdef void count_wild(self, int source, int tag, int change) noexcept


cdef void free_message(Unexpected *message) noexcept
