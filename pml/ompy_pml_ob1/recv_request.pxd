# The receiver's half of each protocol; see `send_request.pxd` for the pictures.
cimport cython
from libc.stdint cimport uint32_t, uint64_t

from ompy.mca.bml cimport Route
from ompy.mca.btl cimport Descriptor

from ompy_pml_ob1.engine cimport Engine, Transfer
from ompy_pml_ob1.header cimport Envelope, FinHeader, GetHeader, RendezvousHeader
from ompy_pml_ob1.matching cimport Matching, Posted, Unexpected


@cython.final
cdef class RecvRequest(Transfer):
    cdef Posted posted
    cdef uint64_t sender            # the sender's request, which waits for our word; 0: none does
    cdef uint64_t next_get          # next byte to read, or to have put
    cdef uint64_t remote_address
    cdef uint32_t checksum          # of what is read there
    cdef bytes remote_handle
    cdef size_t under_way
    cdef uint64_t next_piece
    cdef dict pieces                # piece -> (Btl, registration handle, address, bytes)
    cdef Route writer               # by which the sender was asked to write
    cdef bint getting, putting, pushing
    cdef bint owes_answer           # the first PUT tells the sender of the match, no ACK did
    cdef bint withdrawn             # the sender may not write any more
    cdef Transfer last_word         # the header whose leaving completes it, or None; all bytes have arrived

    cdef int look_for_message(self) except -1

    # A header with its payload, all in one piece, that this request has matched.
    cdef int take_message(self, const char *data, size_t length) except -1
    cdef int take_announced(self, const Envelope *envelope, const char *data, size_t length) except -1
    cdef int take_fragment(self, uint64_t offset, const char *data, size_t length) except -1
    cdef int piece_done(self, const FinHeader *header) except -1

    cdef void trace(self, int event, int way, uint32_t sequence, uint64_t nbytes) noexcept
    cdef int end_read(self) except -1
    cdef int fail_damaged(self) except -1
    cdef int take_rendezvous(self, const RendezvousHeader *header, const char *payload, size_t length) except -1
    cdef bint overlaps_withdrawn(self) except -1
    # Of `acknowledge` and `report`: the header that waits for resources, or None.
    cdef Transfer acknowledge(self, uint64_t limit)
    cdef int finish_if_done(self) except -1
    # Complete once a header has left (None: it has): the sender waits for it, and the program may make no other call then.
    cdef int finish_after(self, Transfer header) except -1
    cdef int take_get(self, const GetHeader *header) except -1
    cdef int read(self) except -1
    cdef int read_part(self, Route route, Descriptor descriptor, uint64_t size) except -1
    cdef int read_otherwise(self) except -1
    cdef Transfer report(self, uint64_t sender, int error)
    cdef int ask_for_puts(self) except -1
    cdef int release_pieces(self) except -1


# One that was released, or a new one; `aim` comes next.
cdef RecvRequest unused_recv(Engine engine, Matching matching)
