# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Whether pieces tile a window.  See `fingerprint.pxd`."""
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc


cdef extern from *:
    """
    #include <stdint.h>
    #define OMPY_PRIME (((uint64_t) 1 << 61) - 1)
    static inline uint64_t ompy_plus(uint64_t one, uint64_t other) {
        uint64_t sum = one + other;
        return sum >= OMPY_PRIME ? sum - OMPY_PRIME : sum;
    }
    static inline uint64_t ompy_minus(uint64_t one, uint64_t other) {
        return ompy_plus(one, OMPY_PRIME - other);
    }
    /* 2**61 is 1 modulo the prime: the product's upper bits are added to the lower ones. */
    static inline uint64_t ompy_times(uint64_t one, uint64_t other) {
        unsigned __int128 product = (unsigned __int128) one * other;
        return ompy_plus((uint64_t) product & OMPY_PRIME, (uint64_t) (product >> 61));
    }
    """
    uint64_t add "ompy_plus"(uint64_t one, uint64_t other) noexcept nogil
    uint64_t minus "ompy_minus"(uint64_t one, uint64_t other) noexcept nogil
    uint64_t times "ompy_times"(uint64_t one, uint64_t other) noexcept nogil


cdef enum:
    NEAR = 1 << NEAR_BITS

# Any number but a few: see `fingerprint.pxd`.
cdef uint64_t BASE = 0x1B4F2D97A3C58E6B


cdef uint64_t plus(uint64_t one, uint64_t other) noexcept nogil:
    return add(one, other)


cdef uint64_t series(uint64_t ratio, int64_t count) noexcept nogil:
    """1 + ratio + ratio**2 + ..., so many terms, by doubling: the first 2n are the first n, and those times ratio**n."""
    cdef uint64_t total = 0, following = 1
    cdef int bit = 0
    while count >> bit > 0:
        bit += 1
    while bit > 0:
        bit -= 1
        total = times(total, add(1, following))
        following = times(following, following)
        if count >> bit & 1:
            total = add(total, following)
            following = times(following, ratio)
    return total


cdef class Fingerprint:
    """See `fingerprint.pxd`."""

    def __dealloc__(self):
        free(self.near)

    cdef int prepare(self, Py_ssize_t reach) except -1:
        """For windows of so many bytes."""
        cdef Py_ssize_t count = (reach >> NEAR_BITS) + 1, i
        cdef uint64_t step
        if self.near != NULL and reach <= self.reach:
            return 0
        free(self.near)
        self.near = <uint64_t *> malloc((NEAR + count) * sizeof(uint64_t))
        if self.near == NULL:
            raise MemoryError()
        self.far = self.near + NEAR
        self.near[0] = self.far[0] = 1
        for i in range(1, NEAR):
            self.near[i] = times(self.near[i - 1], BASE)
        step = times(self.near[NEAR - 1], BASE)
        for i in range(1, count):
            self.far[i] = times(self.far[i - 1], step)
        self.reach = reach
        return 0

    cdef uint64_t power(self, int64_t offset) noexcept nogil:
        return times(self.far[offset >> NEAR_BITS], self.near[offset & (NEAR - 1)])

    cdef uint64_t of_blocks(self, int64_t place, int64_t length, int64_t count, int64_t stride) noexcept nogil:
        if count == 1:
            return minus(self.power(place + length), self.power(place))
        return times(minus(self.power(place + length), self.power(place)), series(self.power(stride), count))

    cdef uint64_t moved(self, uint64_t fingerprint, int64_t distance) noexcept nogil:
        return times(fingerprint, self.power(distance))
