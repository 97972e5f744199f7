# Version II (thesis, 3.3): interrupt driven.
#
#     first packet   | packet's words | source | tag | words | type | scope | message type | up to 24 words |
#     other packet   | packet's words | source | tag | up to 28 words |
#
# The interrupt handler keeps a packet in a buffer until it is whole, which its first word tells, and then puts it where it
# belongs: it continues the message of its source and tag that is not done, or begins one.
from ompy_rpi_raw.message cimport PacketPool, Stored
from ompy_rpi_raw.module cimport RawRpi
from ompy_rpi_raw.v2.outstanding cimport OutstandingMessages

# What the `message type` word says.
cdef enum MessageType:
    POINT_TO_POINT = 1
    COLLECTIVE = 2
    ACKNOWLEDGEMENT = 3


cdef class RawV2(RawRpi):
    cdef int packet_words                        # after the first; 0 between packets
    cdef OutstandingMessages outstanding
    cdef PacketPool pool

    cdef int take_packet(self) except -1
    cdef int add_payload(self, Stored message, int header) except -1
