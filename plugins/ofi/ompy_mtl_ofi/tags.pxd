# A tag of libfabric's, from its highest usable bit down; providers use 64 of them, some fewer.
#
#     2 bits      30 bits, or what is left                          32 bits
#     kind        who: a number of the receiver's                   MPI's tag
#
#     EAGER       the message                                       matched by what a receive wants
#     ANNOUNCED   an `Announcement`, and the message behind it where that is short      the same
#     BODY        a piece of an announced message; the rest is the number that its receiver has given the piece: the provider's
#                 queue may take the receives of pieces in another order than they were posted in
#     WORD        from engine to engine
#
# Who: each process numbers the sources of messages as it makes communicators, 2^k numbers in a row for one of at most 2^k
# sources, the first of them a multiple of 2^k (`context.pxd`).  So a receive from any source ignores k bits, and a
# communicator takes no more of the numbers than it has sources.
from libc.stdint cimport uint32_t, uint64_t

cdef enum:
    KIND_EAGER = 0
    KIND_ANNOUNCED = 1
    KIND_BODY = 2
    KIND_WORD = 3
    MPI_BITS = 32
    KIND_BITS = 2

# Negative tags are the library's own, which no wildcard takes: the sign always counts.
cdef enum:
    ANY_TAG_BITS = 0x7FFFFFFF


cdef inline uint64_t kind_tag(int bits, int kind) noexcept nogil:
    return <uint64_t> kind << (bits - KIND_BITS)


cdef inline int kind_of(int bits, uint64_t tag) noexcept nogil:
    return <int> (tag >> (bits - KIND_BITS)) & 3


cdef inline uint64_t message_tag(uint32_t who, int tag) noexcept nogil:
    return <uint64_t> who << MPI_BITS | <uint32_t> tag


cdef inline uint64_t body_tag(int bits, uint64_t first, uint64_t piece) noexcept nogil:
    return kind_tag(bits, KIND_BODY) | (first + piece & kind_tag(bits, 1) - 1)


cdef inline uint32_t who_of(int bits, uint64_t tag) noexcept nogil:
    return <uint32_t> ((tag & ((<uint64_t> 1 << (bits - KIND_BITS)) - 1)) >> MPI_BITS)


cdef inline int tag_of(uint64_t tag) noexcept nogil:
    return <int> <uint32_t> tag
