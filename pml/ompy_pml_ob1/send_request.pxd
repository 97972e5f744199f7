# The sender's half of each protocol.
#
#   eager     MATCH ------------------------>           complete when the BTL has taken it
#   get       RGET ------------------------->
#                  <---------- reads, FIN               complete
#   fragments RNDV ------------------------->
#                  <------------------- ACK
#             FRAG FRAG FRAG -------------->            complete when the BTLs have taken them
#   put       RNDV ------------------------->
#                  <------------ PUT, PUT               ACK before them where fragments are to come first
#             FRAG, writes, FIN ----------->
#
# What fits goes eagerly, except from `min_rdma_pipeline_size` on where the receiver can read it: one copy, not two.
from libc.stdint cimport int64_t, uint64_t

from ompy.core.typemap cimport Typemap
from ompy.mca.bml cimport Route
from ompy.mca.btl cimport Descriptor

from ompy_pml_ob1.engine cimport Engine, Transfer
from ompy_pml_ob1.header cimport AckHeader, Envelope, FinHeader, PutHeader
from ompy_pml_ob1.matching cimport Matching

cdef enum Stage:
    STAGE_ANNOUNCE, STAGE_WAIT, STAGE_STREAM

cdef class SendRequest(Transfer):
    cdef int mode
    cdef int64_t place              # sequence number that it has before it is started, or -1
    cdef Stage stage
    cdef Envelope envelope
    cdef uint64_t length            # bytes of data
    cdef uint64_t announced         # bytes that went with the announcement
    cdef uint64_t done              # bytes that have gone, whichever way
    cdef uint64_t total             # bytes that the receiver wants
    cdef uint64_t receiver          # the receiver's request
    cdef list shares                # [route, next offset, end] of each route's part
    cdef size_t under_way           # fragments and puts that a BTL has, and headers that wait for resources
    cdef bint pushing
    cdef list puts                  # bytes of PUT headers that wait for resources
    cdef Route reader               # by which the peer may be reading the message, or None
    cdef bytes get_handle
    cdef size_t withdrawn           # where it may have begun to; 0: it was not called back
    cdef bint owes_error            # the receiver has not been told yet that no more comes

    cdef int prepare(self, Engine engine, Matching matching, size_t address, Py_ssize_t count, Typemap typemap,
                     int dest, int tag, int mode) except -1
    cdef int acknowledged(self, const AckHeader *header) except -1
    cdef int put_asked(self, const PutHeader *header) except -1
    cdef int fetched(self, const FinHeader *header) except -1

    cdef void trace(self, int event, int way, uint64_t nbytes) noexcept
    cdef int announce(self) except -1
    cdef Route reading_route(self)
    cdef int announce_rendezvous(self, Route route) except -1
    cdef int announce_get(self, Route route, Route reader) except -1
    cdef int take_place(self) except -1
    cdef int end_reading(self) except -1
    cdef int send_first(self, Route route, char *header, size_t header_size, uint64_t payload) except -1
    cdef list share_out(self, uint64_t begin, uint64_t end)
    cdef int stream(self) except -1
    cdef int finish_if_done(self) except -1
    cdef char *in_place(self, uint64_t offset, size_t *size) except? NULL
    cdef int send_fragments(self, list share) except -1
    cdef int put(self, bytes packet) except -1
    cdef int put_failed(self, bytes packet) except -1
    cdef int piece_gone(self, bytes packet, int status) except -1
    cdef int tell_error(self) except -1
    cdef int piece_over(self, const PutHeader *header, uint64_t size) except -1
    cdef int send_part(self, Route route, Descriptor descriptor, size_t size) except -1
    cdef bint end(self, const FinHeader *fin) except -1
    cdef int tell(self, const FinHeader *fin) except -1
