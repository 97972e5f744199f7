# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Communicators on the wire."""
from libc.stdint cimport uint64_t

from ompy.core.constants cimport ANY_SOURCE
from ompy.core.errors import ERR_UNSUPPORTED_OPERATION, MPIError
from ompy.core.proc cimport Proc

# A context counts a process's communicators in its low 28 bits, the process that made it above them: 1024 processes with
# 262144 contexts each have numbers of their own.
cdef enum:
    COUNT_BITS = 18
    MAKER_BITS = 10


cdef class Scope:
    """A communicator's number on the wire, and its ranks as ranks of the world.

    Parameters:
        communicator: whose messages these are.
    """

    def __cinit__(self, Communicator communicator not None):
        cdef uint64_t context = communicator.context
        self.communicator = communicator
        self.number = <uint32_t> ((context >> 28 & ((1 << MAKER_BITS) - 1)) << COUNT_BITS | context & ((1 << COUNT_BITS) - 1))

    cdef int world_rank(self, int rank) except -2:
        cdef Proc proc
        if rank == ANY_SOURCE:
            return ANY_SOURCE
        proc = self.communicator.peer(rank)
        if proc.index != proc.rank:
            raise MPIError(ERR_UNSUPPORTED_OPERATION,
                           f"pml rpi reaches the processes of its own job; rank {rank} is of job {proc.job}")
        if proc.failure is not None:
            raise proc.failure
        return proc.rank

    cdef int rank_of(self, int world_rank) noexcept:
        return self.communicator.remote_group.rank_of(world_rank)
