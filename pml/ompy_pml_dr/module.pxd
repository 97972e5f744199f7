# A BTL under which another one may lose, damage, repeat and reorder: everything that is given to it arrives once, or the
# peer is reported lost.
from libc.stdint cimport int64_t, uint32_t, uint64_t

from ompy.mca.framed_btl cimport FramedBtl

from ompy_pml_dr.channel cimport Channel, Packet, Patience


cdef class ReliableBtl(FramedBtl):
    cdef Patience patience
    cdef object helper
    cdef uint32_t window
    cdef size_t window_bytes
    cdef int tag                    # that the peer has a receiver for
    cdef list channels              # those with something to watch
    cdef int64_t due                # when the first of them has something to do
    cdef bint working               # inside `progress`
    cdef uint64_t sent, sent_again, repeated, damaged, acknowledgements, held_back, peers_lost

    cdef int watch(self, Channel channel, int64_t due) except -1
    cdef int transmit(self, Channel channel, Packet *packet, int64_t now) except -1
    cdef int repeat(self, Channel channel, Packet *packet, int64_t now) except -1
    cdef int fill_gaps(self, Channel channel, int64_t now) except -1
    cdef int acknowledge(self, Channel channel) except -1
    cdef int attend(self, Channel channel, int64_t now) except -1
    cdef int give_up(self, Channel channel, object error) except -1
