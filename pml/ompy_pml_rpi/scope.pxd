# What one communicator is on the wire: a number of 28 bits, and ranks of the job's world instead of its own.
from libc.stdint cimport uint32_t

from ompy.core.communicator cimport Communicator


cdef class Scope:
    cdef readonly Communicator communicator
    cdef readonly uint32_t number

    cdef int world_rank(self, int rank) except -2        # of a rank of the (remote) group; ANY_SOURCE stays what it is
    cdef int rank_of(self, int world_rank) noexcept
