# A BTL around another one whose messages each begin with a frame: who sent it, which of the sender's messages it is, and
# checksums of both frame and data.
#
#     | Frame: checksum of the frame, of the data, kind, sender, sequence, ... | data |
#
# It stands between a PML and the BTLs that were chosen (`Bml.wrap`).  Those are polled themselves, so its own `progress` is
# for what it has to do by itself.
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from ompy.core.proc cimport Proc
from ompy.mca.btl cimport Endpoint
from ompy.mca.btl_wrapper cimport Wrapper, WrapperEndpoint

cdef enum:
    KIND_DATA = 1
    KIND_CONTROL = 2                # between the frames' makers; there is no data

cdef enum:
    FRAME_SIZE = 40

cdef struct Frame:
    uint32_t frame_checksum         # of the rest of the frame
    uint32_t data_checksum
    uint32_t job                    # checksum of the name of the sender's job
    int32_t source                  # rank of the sender in it
    uint32_t sequence               # counts the sender's messages of KIND_DATA to this peer
    uint32_t acknowledged           # the first of the peer's messages that has not come ...
    uint64_t received               # ... and, bit by bit, which of it and the next 63 have
    uint8_t kind
    uint8_t asks                    # of KIND_CONTROL: 1: for an answer, by the BTL that it came by
    uint8_t answers                 # of KIND_CONTROL: 1: that is one
    uint8_t spare[5]


cdef class FramedBtl(Wrapper):
    cdef readonly uint32_t job
    cdef readonly int32_t rank
    cdef int size
    cdef dict peers                 # (job, rank) in one number -> WrapperEndpoint

    # Fill in the sender and the checksum of the frame, which is to be complete otherwise.
    cdef void seal(self, Frame *frame) noexcept
    # The peer of that rank, met now if need be; None when it can't be reached or told.
    cdef WrapperEndpoint peer(self, uint32_t job, int32_t rank)

    # What it counts itself, besides what the inner BTL does.
    cpdef dict own_statistics(self)

    # For subclasses: a frame and its data are as they were sent; or they are not.  `endpoint` is the sender, or None when
    # the frame is damaged too and the inner BTL does not know.
    cdef int accept(self, int tag, WrapperEndpoint endpoint, const Frame *frame, const char *data, size_t length) except -1
    cdef int refuse(self, WrapperEndpoint endpoint, size_t length) except -1
