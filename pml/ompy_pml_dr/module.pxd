# A BTL under which another one may lose, damage, repeat and reorder: everything that is given to it arrives once, or the
# peer is reported lost.  What it has of a peer's packets it shares with the other BTLs that lead there (`channels.pxd`), so
# that packets go on over those when its own way is lost.
from libc.stdint cimport uint32_t, uint64_t

from ompy.mca.framed_btl cimport FramedBtl

from ompy_pml_dr.channels cimport Channels


cdef class ReliableBtl(FramedBtl):
    cdef readonly Channels channels
    cdef tuple me                   # job and rank
    cdef uint32_t window
    cdef size_t window_bytes
    cdef uint64_t sent, repeated, damaged, held_back
