# Messages that are checked, not repaired: what comes damaged, is missing, or comes twice ends contact with its sender, on both
# sides, by an error that names the other.
from libc.stdint cimport uint32_t

from ompy.mca.btl_wrapper cimport WrapperEndpoint
from ompy.mca.framed_btl cimport FramedBtl


cdef class CheckedEndpoint(WrapperEndpoint):
    cdef uint32_t sent              # sequence number of the next message to the peer
    cdef uint32_t expected          # of the next one from it
    cdef bint broken


cdef class CheckedBtl(FramedBtl):
    cdef list alarms                # peers that are yet to be told that contact has ended

    cdef int end_contact(self, CheckedEndpoint peer, str reason, bint tell) except -1
