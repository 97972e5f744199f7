# CRC-32C (Castagnoli; RFC 3720, appendix B.4): finds every error of up to three bits in messages up to 128 MiB, and every
# burst of up to 32 bits.
from libc.stdint cimport uint32_t

# Of `length` bytes that follow those whose checksum is `before`; 0 before the first.
cdef uint32_t crc32c(uint32_t before, const void *data, size_t length) noexcept nogil
