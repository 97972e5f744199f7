# The TLS of one connection: what leaves is sealed into records, and what has come is opened.
#
#     parts --> cipher --> records --> socket        `pass_on`: some at a time, so that the peer opens while this end seals
#
#     socket --> wire.sealed --> cipher --> wire.target or wire.buffer          `pull`, without the GIL, up to `sealed`; `open`
#
# A queue of frames knows nothing of records.  `pass_on` says of what it has sealed that the system took it, but for the last
# byte: that one is with the system when all records are.  So who has nothing in a queue has nothing here.
from ompy_btl_tcp.cipher cimport Cipher
from ompy_btl_tcp.wire cimport Part, Wire

cdef class Seal:
    cdef Cipher outgoing, incoming
    cdef char *records                           # sealed; those of `begin` to `end` are not with the system
    cdef size_t begin, end
    cdef int number                              # the socket's descriptor

    # As `wire.push`: bytes of the parts that were taken; below 0, minus an error number.  After less than all of them, the next
    # call has parts that go on there.
    cdef ssize_t pass_on(self, Part *parts, int count) except? -1
    # Open a record to where it belongs, an earlier one's rest being gone; False when none is whole, or the connection is over.
    # What lies where a forged one belonged is nothing, and is never told of.
    cdef bint open(self, Wire *wire) except -1
    cdef size_t fill(self, Part *parts, int count, size_t skipped) noexcept nogil
    cdef ssize_t push_records(self) noexcept
    cdef bint renew(self) except -1
