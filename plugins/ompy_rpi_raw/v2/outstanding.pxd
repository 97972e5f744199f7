# Version II's Outstanding Message Structure: three hash tables that lead to the same messages (thesis, figure 3-10).
#
#     receive names       table                key             of a message from 7 with tag 314
#     source and tag      canonical            source, tag     (7, 314)
#     tag                 source wildcard      tag             (0, 314)
#     source              tag wildcard         source          (7, 0)
#     nothing             canonical, traversed
from ompy.mca.rpi cimport Incoming
from ompy_rpi_raw.hash_table cimport Entry, HashTable
from ompy_rpi_raw.message cimport Stored


cdef class OutstandingMessages:
    cdef HashTable canonical, source_wildcard, tag_wildcard
    cdef dict everything                         # number -> message, in order of arrival
    cdef long serial
    cdef readonly int compared                   # messages looked at in the last call

    cdef int add(self, Stored message) except -1
    cdef int remove(self, Stored message) except -1
    # The message of which this packet is another part: the one of its source and tag that has begun and is not done.
    cdef Stored unfinished(self, int source, int tag)
    cdef Stored find(self, Incoming wanted)

    cdef Stored first_in(self, Entry entry, Incoming wanted)
