# What the three versions of rMPI share: sending packet by packet, reading section by section, and finishing receives.
#
#     program   start_send     header, header+words, ... ----> $CGNO
#     network   $CGNI -------> sections -------> `take_section` of the version     in the handler (II, III) or a poll (I)
#     program   `flush`        copies, completions, acknowledgements               never in the handler: it may not write
#
# A section is what a version must have read before it can say how much comes next: a packet's first word, the rest of
# its header, its payload.
from libc.stdint cimport int64_t, uint32_t, uint64_t

from ompy.mca.rpi cimport Envelope, Incoming, Outgoing, Rpi
from ompy_raw.tile cimport Tile

from ompy_rpi_raw.message cimport Stored

cdef enum:
    MOST_WORDS = 31                              # of one packet, its rMPI header included
    RUN_WORDS = 2048                             # handed to the tile at once
    BURST_WORDS = 256                            # read from the network at once, at most

# Words of a packet (table 4.2 of the thesis).
cdef struct Format:
    int first_header, first_payload
    int other_header, other_payload


cdef class RawRpi(Rpi):
    cdef readonly Tile tile
    cdef object context                          # of the component's query
    cdef int rank, processes
    cdef Format format
    cdef bint interrupt_driven
    cdef list posted                             # receives without a message, oldest first
    cdef list arrived                            # Incoming or Stored: all its words are there, `flush` finishes it
    cdef list acknowledgements                   # (source, tag, scope) for the MPI layer
    cdef uint32_t section[MOST_WORDS + 1]
    cdef int have, wanted                        # words of the section under way
    cdef uint32_t run[RUN_WORDS]
    cdef uint32_t burst[BURST_WORDS]
    cdef bint attached, in_wait, busy, probing
    cdef unsigned long long waits_seen, events_seen      # the wait that last asked this source, and the events of all till then
    cdef int unacknowledged
    cdef readonly int64_t messages_sent, packets_sent, messages_received, messages_unexpected

    cdef bint all_is_quiet(self) noexcept
    cdef bint post_wait(self) except -1

    # -- a version's own: its packets ...
    cdef int first_header(self, const Envelope *envelope, int payload_words, uint32_t *words) noexcept
    cdef int other_header(self, const Envelope *envelope, int payload_words, uint32_t *words) noexcept
    # The words in `section` are all that was wanted: act on them, and say what is wanted next.
    cdef int take_section(self) except -1
    # ... and where it keeps messages that are not received yet.
    cdef Stored new_message(self)
    cdef int keep(self, Stored message) except -1
    cdef int drop(self, Stored message) except -1
    cdef Stored find(self, Incoming wanted)      # the first that it would take and nobody has claimed
    cdef list messages(self)

    # -- for versions
    cdef Incoming match_posted(self, const Envelope *envelope)
    # A first packet: a message, claimed by a posted receive if there is one; None for an acknowledgement.
    cdef Stored begin_message(self, const Envelope *envelope)
    cdef Stored store_message(self, const Envelope *envelope, Incoming claimant)
    cdef int end_message(self, Stored message) except -1
    # Misses of a run through memory, for messages that the data cache can't hold.
    cdef int64_t misses(self, uint64_t message_bytes, int words) noexcept

    cdef int read_network(self) except -1
    cdef int transmit(self, Outgoing request, bint interruptible) except -1
    cdef int send_to_self(self, Outgoing request) except -1
    cdef int push(self, Outgoing request, bint interruptible) except -1
    cdef int claim(self, Stored message, Incoming request) except -1
    cdef int flush(self) except -1
    cdef int resume(self) except -1
    cdef int acquire(self) except -1
