# A process whose owner is written in Python.
from libc.stdint cimport uint64_t

from ompy_puma.descriptor cimport Buffer, MemoryDescriptor
from ompy_puma.header cimport Header
from ompy_puma.kernel cimport QKernel
from ompy_puma.match_list cimport MatchEntry, PortalEntry
from ompy_puma.process cimport Process

cdef class Application(Process):
    cdef public list events                      # Happenings as they came; None: keep none
    cdef public object watcher                   # called with each Happening, or None
    cdef dict held                               # keeps memory alive: descriptor -> objects
    cdef dict sending                            # number of a message -> Queued
    cdef uint64_t numbers

    cdef MemoryDescriptor *descriptor_at(self, int descriptor) except NULL
    cdef MemoryDescriptor *heap_at(self, int descriptor) except NULL
    cdef Buffer *buffer_at(self, int descriptor, int number) except NULL
    cdef MatchEntry *entry_at(self, int entry) except NULL
    cdef PortalEntry *portal_at(self, int portal) except NULL
    cdef int may_insert(self, int portal, int entry, int before) except -1
    cdef MemoryDescriptor *made(self, int *index) except NULL
    cdef object post(self, int capability, bint server, unsigned int rank, Header *header, object body)
