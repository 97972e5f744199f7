# The outgoing message queue (Puma, 6.1): what was registered with the kernel and is not out yet.
#
#     whole message         WHOLE ------------------------------> out
#     body is fetched       OFFER --> AWAITED (not in a queue) --> FETCHED comes --> out
#                                        `-- STREAM comes --> PIECES
#     body goes in pieces   OPENING --> PIECES ... -------------> out
#     kernel to kernel      CONTROL ----------------------------> out
#
# A sender that wants its memory back before that has the entries that look at it set aside: what they still have to send is
# copied, an offer is called back, and whoever fetches finds that it can't and asks for pieces.
#
#     WHOLE, OPENING, PIECES, OFFER     a copy; an offer that is not made yet becomes an opening
#     AWAITED                           a copy, and the offer is called back until the entry is over
#
# One queue a link, first in first out, so that messages keep their order.  Entries hold no bodies but these copies, only where
# they are.
# They are made when first needed, used again, and at most `queue_limit` a process (as many again for answers).
from libc.stdint cimport uint32_t, uint64_t

from ompy_puma.header cimport Header, Piece
from ompy_puma.link cimport Link
from ompy_puma.placement cimport Placement
from ompy_puma.process cimport Process

cdef enum Stage:
    STAGE_FREE, STAGE_WHOLE, STAGE_OFFER, STAGE_AWAITED, STAGE_OPENING, STAGE_PIECES, STAGE_CONTROL

cdef struct Outgoing:
    Outgoing *next                               # in its link's queue, or spare
    Outgoing *next_reply                         # among `replies`
    Outgoing *previous_reply
    void *process                                # Process, a reference; NULL for control packets
    void *link                                   # Link, borrowed: kernels keep their links
    void *handle                                 # bytes, a reference, or NULL
    const char *body                             # NULL: gathered from `source`
    char *copy                                   # of the body, the entry's own, or NULL
    const char *called_back                      # where the peer was told to fetch from, and may not any more; or NULL
    uint64_t called_back_length
    uint64_t length, done
    uint64_t owner
    uint64_t number                              # its name on the wire: generation << 32 | slot
    int *flag
    Stage stage
    bint answer                                  # a reply or an acknowledgement
    bint reply
    int portal, entry                            # of a reply: what it was read through
    Placement source
    Header header                                # of the message; of what asked, once a reply is on its way
    Header question
    Piece piece


cdef class OutgoingQueue:
    cdef readonly uint32_t node                  # this one
    cdef Outgoing **slots
    cdef uint32_t slot_count, slot_room
    cdef Outgoing *spare
    cdef Outgoing *replies                       # in use, in any order
    cdef list busy                               # links whose queues are not empty
    cdef uint64_t generation
    cdef uint32_t awaited                        # offers that nobody has answered yet
    cdef uint64_t packets                        # sent from the queue
    cdef char *packet                            # where a packet is put together that has several parts
    cdef size_t packet_room
    cdef Outgoing *within                        # entry whose sender is still inside its call
    cdef bint over                               # and which is out already

    # An entry for the process (None: the kernel itself), counted as its own or among the answers given for it.  The caller
    # has seen that there is room.
    cdef Outgoing *new(self, Process process, bint answer) except NULL
    cdef Outgoing *find(self, uint64_t number) noexcept
    # The entry is a reply, out of `source`, to `question`.
    cdef void replies_to(self, Outgoing *entry, const Placement *source, const Header *question) noexcept
    # Appends to the link's queue and sends what can be sent.
    cdef int add(self, Outgoing *entry, Link link) except -1
    # The same; True: the entry is out already, and its sender was not told, who learns it from this.
    cdef bint add_and_see(self, Outgoing *entry, Link link) except -1
    cdef int push(self, Link link) except -1
    cdef int advance(self, Outgoing *entry, Link link) except -1
    cdef int fetched(self, uint32_t node, uint64_t number, int status) except -1
    cdef int stream(self, uint32_t node, uint64_t number) except -1
    # Entries for the link look at this memory no more.  False: the peer may be fetching from it, and can't be called back.
    cdef bint set_aside(self, Link link, const char *address, uint64_t length) except -1
    cdef int keep_copy(self, Outgoing *entry) except -1
    cdef int finish(self, Outgoing *entry, int status) except -1
    cdef int fail(self, Link link, int status) except -1
    cdef int progress(self) except -1
    cdef int transmit(self, Link link, const char *front, size_t front_size, const char *body, size_t body_size) except -1
    cdef int reserve(self, size_t size) except -1
    cdef int send_whole(self, Outgoing *entry, Link link) except -1
    cdef int send_offer(self, Outgoing *entry, Link link) except -1
    cdef int send_opening(self, Outgoing *entry, Link link) except -1
    cdef int send_pieces(self, Outgoing *entry, Link link) except -1
