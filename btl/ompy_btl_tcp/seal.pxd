# The TLS of one connection: what leaves is sealed into records, and what has come is opened.
#
#     parts --> session --> waiting --> socket        `pass_on`: some at a time, so that the peer opens while this end seals
#
#     socket --> wire.sealed --> session --> wire.target or wire.buffer          `pull`, without the GIL, up to `sealed`; `open`
#
# A queue of frames knows nothing of records.  `pass_on` says of what it has sealed that the system took it, but for the last
# byte: that one is with the system when all records are.  So who has nothing in a queue has nothing here.
from ompy_btl_tcp.wire cimport Part, Wire

cdef class Seal:
    cdef object write, read                      # of the session: seals what is given, opens into a buffer
    cdef object incoming                         # ssl.MemoryBIO: of what has come, the records that are not opened
    cdef object take_records, put_records        # from the ssl.MemoryBIO on the way out, and to `incoming`
    cdef int number                              # the socket's descriptor
    cdef bytes waiting                           # records that are not all with the system; None: there are none
    cdef size_t at                               # of these, bytes that are
    cdef bint unread                             # `incoming`, or the session, may have something to open

    # As `wire.push`: bytes of the parts that were taken; below 0, minus an error number.  After less than all of them, the next
    # call has parts that go on there.
    cdef ssize_t pass_on(self, Part *parts, int count) except? -1
    # Open a record, or the rest of one, to where it belongs; False when none is whole, or there is no room.
    cdef bint open(self, Wire *wire) except -1
    cdef ssize_t push_waiting(self) except? -1
