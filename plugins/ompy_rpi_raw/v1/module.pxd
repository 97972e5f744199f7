# Version I (thesis, 3.2): polling.
#
#     first packet   | source | tag | words | type | scope | up to 26 words |
#     other packet   | source | tag | up to 29 words |
#
# Nothing in a packet says whether it is a message's first: it is one unless a message of this source and tag has begun and
# is not done.  The network is read in receives, waits and probes, never in a blocking send: two neighbours that send each
# other more than the 8 words between them hold never come out (figure 3-5).
from ompy_rpi_raw.message cimport PacketPool, Stored
from ompy_rpi_raw.module cimport RawRpi
from ompy_rpi_raw.v1.outstanding cimport OutstandingMessages

cdef enum Section:
    SOURCE_AND_TAG
    REST_OF_HEADER
    PAYLOAD


cdef class RawV1(RawRpi):
    cdef Section reading
    cdef int source, tag                         # of the packet being read
    cdef Stored message                          # that it is a part of
    cdef OutstandingMessages outstanding
    cdef PacketPool pool

    cdef int packet_over(self) except -1
    cdef int await_payload(self, int most_words) except -1
    cdef int take_header(self) except -1
    cdef int take_payload(self) except -1
