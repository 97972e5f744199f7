# Collective accesses of ranks that share a host: first they agree whether to go through shared memory (`exchange.pxd`), by what
# each is about to do.
from libc.stdint cimport int64_t

from ompy.core.file cimport Access
from ompy.mca.fcoll cimport FcollModule
from ompy_fcoll_two_phase.exchange cimport Manner
from ompy_fcoll_two_phase.window cimport Window


# What a rank says of itself.
cdef struct Plan:
    int64_t first, end                           # of its bytes in the file
    int64_t nbytes
    int64_t traits                               # Trait, or'ed together
    int64_t window                               # bytes of the file that it would take at a time

cdef enum Trait:
    ORDERED = 1                                  # its offsets grow
    SHORT = 2                                    # its pieces are short
    QUIET = 4                                    # nothing but this access is under way


cdef class TwoPhase(FcollModule):
    cdef Py_ssize_t long_piece, read_twice
    cdef Window window
    cdef Plan *plans                             # in rank order

    cdef Py_ssize_t move_all(self, Access access) except -1
    cdef int plan(self, Access access) except -1
    # Whether the ranks go through the window: the same answer on all of them.
    cdef bint is_gathered(self, bint writing, int64_t start, int64_t end) except -1
    cdef Manner manner(self)
