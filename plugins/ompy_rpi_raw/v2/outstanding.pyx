# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Version II's Outstanding Message Structure."""
from ompy.core.constants cimport ANY_SOURCE, ANY_TAG


cdef class OutstandingMessages:
    """Messages by source and tag, by tag, and by source."""

    def __cinit__(self):
        self.canonical = HashTable()
        self.source_wildcard = HashTable()
        self.tag_wildcard = HashTable()
        self.everything = {}

    cdef int add(self, Stored message) except -1:
        cdef int source = message.envelope.source
        cdef int tag = message.envelope.tag
        self.canonical.insert(source, tag, message)
        self.source_wildcard.insert(0, tag, message)
        self.tag_wildcard.insert(source, 0, message)
        message.place = self.serial
        self.everything[self.serial] = message
        self.serial += 1
        return 0

    cdef int remove(self, Stored message) except -1:
        cdef int source = message.envelope.source
        cdef int tag = message.envelope.tag
        self.canonical.remove(source, tag, message)
        self.source_wildcard.remove(0, tag, message)
        self.tag_wildcard.remove(source, 0, message)
        del self.everything[message.place]
        return 0

    cdef Stored unfinished(self, int source, int tag):
        cdef Entry entry = self.canonical.chain(source, tag)
        self.compared = 0
        while entry is not None:
            self.compared += 1
            if entry.source == source and entry.tag == tag and not entry.message.done:
                return entry.message
            entry = entry.next
        return None

    cdef Stored first_in(self, Entry entry, Incoming wanted):
        while entry is not None:
            self.compared += 1
            if entry.message.claimant is None and wanted.takes(&entry.message.envelope):
                return entry.message
            entry = entry.next
        return None

    cdef Stored find(self, Incoming wanted):
        cdef Stored message
        cdef int source = wanted.world_source
        cdef int tag = wanted.wanted_tag
        self.compared = 0
        if source != ANY_SOURCE and tag != ANY_TAG:
            return self.first_in(self.canonical.chain(source, tag), wanted)
        if tag != ANY_TAG:
            return self.first_in(self.source_wildcard.chain(0, tag), wanted)
        if source != ANY_SOURCE:
            return self.first_in(self.tag_wildcard.chain(source, 0), wanted)
        for message in self.everything.values():
            self.compared += 1
            if message.claimant is None and wanted.takes(&message.envelope):
                return message
        return None
