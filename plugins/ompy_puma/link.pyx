# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Base classes of wires and links.  The contract is in `link.pxd`."""


cdef class Wire:
    """What a node is attached to."""

    cdef Link link(self, uint32_t node):
        raise NotImplementedError


cdef class Link:
    """The way to one node."""

    cdef int transmit(self, const char *header, size_t header_size, const char *body, size_t body_size) except -1:
        raise NotImplementedError

    cdef int report(self) except -1:
        return 0

    cdef bytes offer(self, const void *address, uint64_t length):
        return None

    cdef int withdraw(self, bytes handle) except -1:
        return 0

    cdef bint call_back(self, const void *address, uint64_t length) except -1:
        return False

    cdef int restore(self, const void *address, uint64_t length) except -1:
        return 0

    cdef int fetch(self, char *local, uint64_t remote, uint64_t length, bytes handle, uint64_t slot) except -1:
        raise NotImplementedError
