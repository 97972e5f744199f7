# One peer: its tile, and the fragment of its that is arriving.
from libc.stdint cimport uint32_t

from ompy.mca.btl cimport Endpoint


cdef class Assembly:
    """A fragment of one tile's, as far as it has arrived."""
    cdef char *data
    cdef size_t capacity
    cdef size_t length                           # bytes in all
    cdef size_t received                         # bytes, padding included
    cdef int tag

    cdef int begin(self, int tag, size_t length) except -1
    # True when the fragment is complete.
    cdef bint add(self, const uint32_t *words, int count) noexcept


cdef class GdnEndpoint(Endpoint):
    cdef readonly int tile
