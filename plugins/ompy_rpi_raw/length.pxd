# Versions I and II tell lengths in words; MPI needs bytes.  Their `type` word, which the thesis fills with a datatype that
# no receiver reads, says how many bytes of the last word are padding, and what the message is for.
#
#     type   | kind | padding |        padding: 2 bits
from libc.stdint cimport uint32_t, uint64_t

from ompy.mca.rpi cimport Envelope


cdef inline uint32_t words_of(const Envelope *envelope) noexcept nogil:
    return <uint32_t> ((envelope.length + 3) >> 2)


cdef inline uint32_t type_of(const Envelope *envelope) noexcept nogil:
    return envelope.kind << 2 | <uint32_t> (-envelope.length & 3)


cdef inline void set_length(Envelope *envelope, uint32_t words, uint32_t type_word) noexcept nogil:
    envelope.length = 4 * <uint64_t> words - (type_word & 3)
    envelope.kind = type_word >> 2
