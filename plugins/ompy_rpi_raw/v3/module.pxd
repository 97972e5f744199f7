# Version III (thesis, chapter 4).
#
#     first packet   | rank | bytes | tag | scope, kind | up to 27 words |
#     other packet   | rank | up to 30 words |
#
# The interrupt handler `drain_gdn` is a state machine (figure 4-12); it may be left in any state, in the middle of a
# packet, and goes on there at the next interrupt:
#
#     BETWEEN_PACKETS --rank of nobody known--> IN_ENVELOPE --zero length--> BETWEEN_PACKETS
#            |                                       |
#            +------rank of an active message--> IN_PAYLOAD --packet's end--> BETWEEN_PACKETS
from ompy_rpi_raw.module cimport RawRpi
from ompy_rpi_raw.v3.outstanding cimport OutstandingReceive, UnexpectedMessages

cdef enum State:
    BETWEEN_PACKETS
    IN_ENVELOPE
    IN_PAYLOAD


cdef class RawV3(RawRpi):
    cdef State state
    cdef OutstandingReceive sender               # whose packet is being read (`curr_sender_rank`, table 4.7)
    cdef int packet_bytes                        # of its payload
    cdef list receives                           # by rank: OutstandingReceive (ORIA)
    cdef UnexpectedMessages unexpected           # UMS

    cdef int packet_over(self) except -1
    cdef int await_payload(self, int most_words) except -1
    cdef int take_rank(self) except -1
    cdef int take_envelope(self) except -1
    cdef int take_payload(self) except -1
