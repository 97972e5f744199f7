# Whether pieces of a window tile it: each rank adds up its own, and the sums tell.
#
#     |AABBAABB|      where pieces tile [low, high), all their ends but the last meet a beginning, all beginnings but the
#     low      high   first an end.  So, for any function g of an offset,
#
#     sum(g(end) - g(beginning)) == g(high) - g(low)
#
# With g(x) = BASE**x modulo the prime 2**61 - 1 this is an equation of polynomials in BASE of no higher degree than a window
# has bytes: where the pieces do not tile, fewer than `window` values of BASE of 2**61 would solve it.  And equal blocks at
# equal distances, which most views are made of, are a geometric series, as quickly added up as a single one.
from libc.stdint cimport int64_t, uint64_t

cdef enum:
    NEAR_BITS = 12


cdef class Fingerprint:
    cdef uint64_t *near                          # g(0), g(1), ... g(2**NEAR_BITS - 1)
    cdef uint64_t *far                           # g(0), g(1 << NEAR_BITS), ...
    cdef Py_ssize_t reach                        # farthest offset in a window

    cdef int prepare(self, Py_ssize_t reach) except -1
    # g(end) - g(beginning), summed up over `count` blocks.
    cdef uint64_t of_blocks(self, int64_t place, int64_t length, int64_t count, int64_t stride) noexcept nogil
    # Of the same blocks, where offsets are larger by a distance.
    cdef uint64_t moved(self, uint64_t fingerprint, int64_t distance) noexcept nogil
    cdef uint64_t power(self, int64_t offset) noexcept nogil


cdef uint64_t plus(uint64_t one, uint64_t other) noexcept nogil
