# How a fragment travels: packets, each one message on the network, so of at most 31 words.
#
#     first packet     | head | bytes of the fragment | up to 29 words of it |
#     further ones     | head | up to 30 words of it |
#
#     head:  31 tag 24 | 23 first | 22 words behind the head 18 | 9 source tile 0
#
# A tile sends one fragment after another and the network keeps the order between two tiles, so a further packet belongs
# to its source's last fragment.  The last word is padded.
from libc.stdint cimport uint32_t

from ompy_raw.header cimport MOST_WORDS

cdef enum:
    FIRST = 1 << 23

cdef inline uint32_t make_head(int tag, bint first, int words, int source) noexcept nogil:
    return <uint32_t> tag << 24 | (FIRST if first else 0) | words << 18 | source

cdef inline int tag_of(uint32_t head) noexcept nogil:
    return head >> 24

cdef inline int words_of(uint32_t head) noexcept nogil:
    return head >> 18 & 31

cdef inline int source_of(uint32_t head) noexcept nogil:
    return head & 0x3FF
