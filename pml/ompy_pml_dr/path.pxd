# One BTL towards one peer: r2's choice, or one that stands in where the others are lost.
#
#     stands --- the BTL reports it, or refuses -----------------------> lost --- renewed, asked, answered ---> stands
#            \-- silent, or full, while others bring acknowledgements / |    ^
#                                                                        \---/ no answer: renewed again
#
# A path whose BTL can't renew contact (clause 31 of `ompy/mca/btl.pxd`) never stands again: its loss is the peer's.  Over a
# lost one nothing goes but questions; the answer shows that both directions work.  Of two that renew at a time one hesitates.
from libc.stdint cimport int32_t, int64_t

from ompy.mca.framed_btl cimport Frame

from ompy_pml_dr.channel cimport Channel, Packet, PathRecord


cdef class Path(PathRecord):
    cdef readonly Channel channel
    cdef int32_t number             # among the channel's
    cdef bint hesitates             # the peer renews first
    cdef readonly bint is_lost
    cdef int64_t renew_at           # of a lost one
    cdef int64_t ask_at             # again; 0: not before it is renewed
    cdef bint owes_answer
    cdef bint is_met                # the peer has asked since it was lost, or renewed
    # -- of one that stands
    cdef int64_t missed_since

    cdef bint can_renew(self) noexcept
    cdef bint has_room_for(self, size_t length) noexcept
    # The inner BTL's answer; raises MPIError where it has lost the peer.
    cdef int carry(self, Packet *packet, int64_t now) except -1
    cdef int control(self, bint asks, bint answers, int tag) except -1
