# Context ids of new communicators; see `contexts.pyx`.
from libc.stdint cimport uint64_t

from ompy.core.communicator cimport Communicator

cdef enum:
    # Contexts of a communicator: its own, and those in reserve.
    SPAN = 8

# A communicator's own, which nobody else hands out, and its reserve behind it.
cdef uint64_t new_context() except 0
# The context of one of several disjoint groups of `comm`; collective.  `reserve`: how many it begins with itself.
cdef uint64_t reserved(Communicator comm, int groups, int number, uint64_t *reserve) except 0
