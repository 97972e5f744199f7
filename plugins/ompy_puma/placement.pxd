# How a descriptor takes a message, or gives one: decided once, when the header is here.
#
#     place      validates the descriptor, claims room in it (a buffer, a stretch, a letter), says where the body goes
#     write      puts bytes of the body there; they may come in several pieces
#     read       gathers bytes of what a read descriptor holds
#     settle     all of it is there (or will never be): the buffer or letter is its owner's
from libc.stdint cimport int32_t, uint64_t

from ompy_puma.descriptor cimport Buffer, MemoryDescriptor
from ompy_puma.header cimport Header
from ompy_puma.heap cimport Letter
from ompy_puma.process cimport DropReason, Process

cdef struct Placement:
    int32_t descriptor
    int32_t base                                 # whose memory it is: the descriptor, or what it overlays
    int operation                                # WRITE, READ or CHANGE
    int saved
    bint acknowledge
    char *body                                   # one run of bytes; NULL when they lie in several
    uint64_t stream                              # then: where they begin in the chain of buffers
    uint64_t length                              # bytes of body that the descriptor takes or gives; of a word that is changed
    Buffer *buffer
    Letter *letter

# DROP_NONE: claimed.  DROP_TOO_LONG, DROP_FULL, DROP_INVALID, DROP_NO_REPLY: nothing was touched.
cdef DropReason place(Process process, int descriptor, const Header *header, Placement *placement) noexcept
# Bytes of the body from `position` on; what lies behind `placement.length` is thrown away.  False: memory was taken away.
cdef bint write(Process process, Placement *placement, uint64_t position, const char *data, uint64_t size) noexcept
cdef bint read(Process process, Placement *placement, uint64_t position, char *data, uint64_t size) noexcept
# The longest run at `position`; NULL: memory was taken away.
cdef char *run_at(Process process, Placement *placement, uint64_t position, uint64_t *size) noexcept
cdef void settle(Placement *placement, bint whole) noexcept
