# A chained hash table of messages by source and tag, with the thesis's hash function (figure 3-9).
#
#     buckets   [ ] [ ] -> (7, 314) m1 -> (7, 314) m3 -> (2, 9) m2          a chain is in order of arrival
from libc.stdint cimport uint32_t

from ompy_rpi_raw.message cimport Stored


cdef class Entry:
    cdef int source, tag
    cdef Stored message
    cdef Entry next


cdef class HashTable:
    cdef list buckets, last                      # first Entry of each, or None; and its last one
    cdef readonly int entries

    cdef int insert(self, int source, int tag, Stored message) except -1
    cdef int remove(self, int source, int tag, Stored message) except -1
    # The first entry of the bucket that this key is in; entries of other keys may stand in it.
    cdef Entry chain(self, int source, int tag)

    cdef int grow(self) except -1


cdef uint32_t hash_key(int source, int tag) noexcept nogil
