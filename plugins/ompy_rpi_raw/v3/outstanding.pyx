# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Version III's receive structures."""
from ompy.core.constants cimport ANY_SOURCE, ANY_TAG
from ompy_rpi_raw.hash_table cimport Entry


cdef class OutstandingReceive:
    """The message that one sender is in the middle of."""


cdef class UnexpectedMessages:
    """Messages that came before anybody asked for them."""

    def __cinit__(self):
        self.table = HashTable()
        self.arrivals = []

    cdef int add(self, Stored message) except -1:
        self.arrivals.append(message)
        return self.table.insert(message.envelope.source, message.envelope.tag, message)

    cdef int remove(self, Stored message) except -1:
        self.arrivals.remove(message)
        return self.table.remove(message.envelope.source, message.envelope.tag, message)

    cdef Stored find(self, Incoming wanted):
        cdef Stored message
        cdef Entry entry
        self.compared = 0
        if wanted.world_source != ANY_SOURCE and wanted.wanted_tag != ANY_TAG:
            entry = self.table.chain(wanted.world_source, wanted.wanted_tag)
            while entry is not None:
                self.compared += 1
                if entry.message.claimant is None and wanted.takes(&entry.message.envelope):
                    return entry.message
                entry = entry.next
            return None
        for message in self.arrivals:
            self.compared += 1
            if message.claimant is None and wanted.takes(&message.envelope):
                return message
        return None
