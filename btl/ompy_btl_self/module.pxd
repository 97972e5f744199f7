# Loopback.  Messages wait in a queue of copies until the next progress: a receiver is thus never called from inside the
# send of the very code that it belongs to.
from libc.stdint cimport uint64_t

from ompy.mca.btl cimport Btl

cdef struct Letter:
    Letter *next
    size_t capacity
    size_t length
    int tag


cdef class SelfBtl(Btl):
    cdef Letter *first
    cdef Letter *last
    cdef Letter *spare                           # letters of the eager limit's size, to be used again
    cdef int spare_count
    cdef object endpoint
    cdef uint64_t messages, bytes

    cdef Letter *write(self, size_t length, int tag) except? NULL
    cdef int post(self, Letter *letter) except -1
    cdef void discard(self, Letter *letter) noexcept
    cdef int clear(self) except -1
