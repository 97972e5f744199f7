# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""A hash table of messages by source and tag."""

cdef enum:
    FIRST_BUCKETS = 64


cdef uint32_t hash_key(int source, int tag) noexcept nogil:
    """Figure 3-9: the source above the tag, then the mixing of Java 1.4's hash tables."""
    cdef uint32_t i = <uint32_t> source << 21 | <uint32_t> tag
    i += ~(i << 9)
    i ^= i >> 14 | i << 18
    i += i << 4
    i ^= i >> 10 | i << 22
    return i


def hash_of(source: int, tag: int) -> int:
    """The thesis's hash of a key, for tests."""
    return hash_key(source, tag)


cdef class HashTable:
    """Messages by source and tag, of each key in order of arrival."""

    def __cinit__(self):
        self.buckets = [None] * FIRST_BUCKETS
        self.last = [None] * FIRST_BUCKETS

    cdef int insert(self, int source, int tag, Stored message) except -1:
        cdef Entry entry = Entry.__new__(Entry)
        cdef Py_ssize_t bucket
        if self.entries >= 2 * len(self.buckets):
            self.grow()
        entry.source, entry.tag, entry.message = source, tag, message
        bucket = hash_key(source, tag) % len(self.buckets)
        if self.buckets[bucket] is None:
            self.buckets[bucket] = entry
        else:
            (<Entry> self.last[bucket]).next = entry
        self.last[bucket] = entry
        self.entries += 1
        return 0

    cdef int remove(self, int source, int tag, Stored message) except -1:
        cdef Py_ssize_t bucket = hash_key(source, tag) % len(self.buckets)
        cdef Entry before = None
        cdef Entry entry = self.buckets[bucket]
        while entry is not None and entry.message is not message:
            before, entry = entry, entry.next
        if entry is None:
            raise KeyError((source, tag))
        if before is None:
            self.buckets[bucket] = entry.next
        else:
            before.next = entry.next
        if entry.next is None:
            self.last[bucket] = before
        self.entries -= 1
        return 0

    cdef Entry chain(self, int source, int tag):
        return self.buckets[hash_key(source, tag) % len(self.buckets)]

    cdef int grow(self) except -1:
        cdef Entry entry
        cdef list old = self.buckets
        self.buckets = [None] * (2 * len(old))
        self.last = [None] * (2 * len(old))
        self.entries = 0
        for entry in old:
            while entry is not None:
                self.insert(entry.source, entry.tag, entry.message)
                entry = entry.next
        return 0
