# What sends and receives share: peers, words between engines, and matching where the provider does not do it.
#
#     eager          a copy of the message ---->                                  the send is over at once
#     announced      how long, its number ---->
#                                         <---- PULL: number, where, how much, in what pieces
#                    the body, in pieces  ---->  into the receive's memory        longer, or synchronous: then a short one goes
#                                                                                 with the announcement, and PULL wants nothing
#
# Receives stand in the provider's queue, each with room for an eager message of ours, from which it is copied: so a message
# that is too long is whole all the same, and the program's memory is nobody's until a body is asked for.
#
# THERE   the provider matches.
# HERE    We do, with one receive of anything, the *sweep*, behind all that the provider has: whatever none of those wants comes
#         here, in its order, and is matched with receives that were posted later, or kept.  A probe looks through what was
#         kept; providers that can look into their own queues (FI_PEEK) are few.  So does a communicator that is freed; and
#         receives beyond what the provider's queue holds are kept here as well.
# LEAVING The sweep was called back, and what has become of it is not known yet.
#
#     THERE -- probe, full queue, communicator freed --> HERE -- a receive, and none is posted here --> LEAVING --> THERE
#                                                        HERE <-- receives were posted here meanwhile --'
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.communicator cimport Communicator
from ompy.core.proc cimport Proc
from ompy.mca.mtl cimport MtlRecv, MtlSend

from ompy_mtl_ofi.context cimport ContextTable, OfiContext
from ompy_mtl_ofi.endpoint cimport Endpoint, Event, Operation

# Kinds of operations.
cdef enum:
    OUT = 0                         # a copy of ours; owner: Peer
    BODY_OUT = 1                    # owner: OfiSend
    RECEIVE = 2                     # owner: OfiRecv
    SWEEP = 3
    WORD_IN = 4
    BODY_IN = 5                     # owner: OfiRecv

cdef enum:
    THERE = 0
    HERE = 1
    LEAVING = 2

# What words say.
cdef enum:
    PULL = 1                        # number of the send, of the first piece, bytes wanted, bytes of a piece
    ASK = 2                         # context; who asks
    TELL = 3                        # context, base; who tells

cdef struct Word:
    uint32_t what
    uint32_t rank                   # in the communicator's group
    uint64_t values[4]

cdef struct Announcement:
    uint64_t number, length


cdef class Peer:
    cdef readonly Proc proc
    cdef uint64_t address
    cdef bint failed, stalled
    cdef Operation *head                         # operations for which the provider had no room, the oldest first
    cdef Operation *tail
    cdef object waiting                          # deque of sends behind them


cdef class Engine(Endpoint):
    cdef ContextTable contexts
    cdef readonly uint64_t eager_limit, piece
    cdef uint64_t most                           # receives that the provider may have
    cdef uint64_t there                          # that it has
    cdef uint64_t here                           # that we match
    cdef int matching
    cdef Operation *sweep                        # NULL: not posted
    cdef Operation *late                         # receives for which the provider had no room
    cdef uint64_t numbered                       # the last number given
    cdef dict announced                          # number -> OfiSend
    cdef dict pulling                            # number -> OfiRecv
    cdef list breaking_off                       # (when it ends at the latest, OfiRecv), the oldest first
    cdef list stalled                            # Peers
    cdef bint ending
    cdef int looks                               # in a row that are worth it: something has moved just now, or was posted
    cdef readonly uint64_t unexpected, pulled, stalls, swept

    cdef Peer peer_of(self, Communicator comm, int rank)
    # The first of so many numbers in a row, modulo their bits.
    cdef uint64_t number(self, uint64_t count=*) noexcept
    # A copy of a short message: OK or OUT_OF_RESOURCE; a peer that is gone is reported, and OK.
    cdef int eager(self, Peer peer, const char *data, uint64_t length, uint64_t tag) except -1
    # Hand an operation to the provider, now or in its turn.
    cdef int post(self, Peer peer, Operation *operation) except -1
    cdef int enqueue(self, Peer peer, Operation *operation) except -1
    cdef int wait_in_line(self, Peer peer, MtlSend request) except -1
    cdef int push(self, Peer peer) except -1
    cdef int push_all(self) except -1
    cdef int word(self, Peer peer, uint32_t what, uint32_t rank, uint64_t first, uint64_t second=*, uint64_t third=*,
                  uint64_t fourth=*) except -1
    cdef int told(self, const Word *word) except -1
    cdef int ask(self, OfiContext context, int rank, MtlSend request) except -1
    # Of a body or a word, now or later.
    cdef int post_receive(self, Operation *operation, uint64_t ignore) except -1
    # Bits that do not count where such a one is matched.
    cdef uint64_t ignored(self, int kind) noexcept
    cdef int lost(self, Peer peer, int error) except -1

    cdef int completed(self, Event *event) except -1
    cdef int received(self, Event *event) except -1
    cdef int came(self, Event *event) except -1
    # A message that has come, for a receive; None: it is kept.
    cdef int hand_over(self, MtlRecv request, OfiContext context, uint64_t tag, const char *body, uint64_t length) except -1
    cdef int handle_all(self) except -1

    cdef int match_here(self) except -1
    cdef int match_there(self) except -1
    cdef int post_sweep(self) except -1
    # Bring here what has come and nobody wanted.
    cdef int look(self) except -1
