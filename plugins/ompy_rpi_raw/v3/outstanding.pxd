# Version III's receive structures (thesis, figure 4-11).
#
#     ORIA, by sender         rank 0    inactive
#                             rank 1    envelope, words outstanding ----> an entry of the UMS: nobody asked for it yet
#                             rank 2    envelope, words outstanding ----> a posted receive: straight to the program's memory
from libc.stdint cimport int64_t

from ompy.mca.rpi cimport Envelope, Incoming
from ompy_rpi_raw.hash_table cimport HashTable
from ompy_rpi_raw.message cimport Stored


cdef class OutstandingReceive:
    """What is known of the message that one sender is in the middle of (ORI, table 4.6); a process sends one at a time."""
    cdef Envelope envelope
    cdef bint active
    cdef int64_t bytes_outstanding
    cdef Incoming posted                         # the posted receive that takes the words, or None
    cdef Stored unexpected                       # else the entry of the unexpected message structure


cdef class UnexpectedMessages:
    """Messages that came before anybody asked for them (UMS, table 4.4): hashed by envelope, and in order of arrival."""
    cdef HashTable table
    cdef readonly list arrivals
    cdef readonly int compared                   # envelopes, in the last call

    cdef int add(self, Stored message) except -1
    cdef int remove(self, Stored message) except -1
    cdef Stored find(self, Incoming wanted)
