# A message that no receive has asked for yet, or whose receive waits for its last word.
from libc.stdint cimport uint32_t, uint64_t

from ompy.mca.rpi cimport Detached, Incoming


cdef class Stored(Detached):
    cdef uint64_t received                       # bytes
    cdef bint done, forgotten
    cdef bint taken                              # by a matched probe, and its receive is not there yet
    cdef Incoming claimant                       # the receive, or for now the probe, that takes it, or None
    cdef object place                            # where the version's structure keeps it

    cdef int append(self, const uint32_t *words, uint64_t length) except -1
    # Into the program's memory.
    cdef int copy_to(self, Incoming request) except -1
    cdef int release(self) except -1


# -- versions I and II: packet buffers from a pool, in a list (thesis, 3.2.2)
#
#     message -> [26 words] -> [29 words] -> [15 words]          of 70 words, version I
cdef enum:
    BUFFER_WORDS = 31

cdef struct PacketBuffer:
    PacketBuffer *next
    uint32_t bytes
    uint32_t words[BUFFER_WORDS]

cdef class PacketPool:
    cdef PacketBuffer *free_buffers
    cdef readonly size_t made, used

    cdef PacketBuffer *take(self) except NULL
    cdef void give_back(self, PacketBuffer *buffer) noexcept


cdef class PooledMessage(Stored):
    cdef PacketPool pool
    cdef PacketBuffer *first
    cdef PacketBuffer *last


# -- version III: one run of memory, of the size that the envelope tells (table 4.4)
cdef class BufferedMessage(Stored):
    cdef char *buffer
