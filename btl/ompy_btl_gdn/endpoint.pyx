# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""One peer: its tile, and the fragment of its that is arriving."""
from libc.stdint cimport uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from ompy.mca.btl cimport Endpoint


cdef class Assembly:
    def __dealloc__(self):
        free(self.data)

    cdef int begin(self, int tag, size_t length) except -1:
        # Whole words arrive, padding and all.
        cdef size_t needed = (length + 3) // 4 * 4
        if needed > self.capacity:
            data = <char *> realloc(self.data, needed)
            if data == NULL:
                raise MemoryError(f"no memory for a fragment of {length} bytes")
            self.data = data
            self.capacity = needed
        self.tag = tag
        self.length = length
        self.received = 0
        return 0

    cdef bint add(self, const uint32_t *words, int count) noexcept:
        memcpy(self.data + self.received, words, count * sizeof(uint32_t))
        self.received += count * sizeof(uint32_t)
        return self.received >= self.length


cdef class GdnEndpoint(Endpoint):
    def __init__(self, btl, proc, int tile):
        Endpoint.__init__(self, btl, proc)
        self.tile = tile
