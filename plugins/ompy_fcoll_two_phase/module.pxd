# Collective accesses of ranks that share a host, window by window of the file:
#
#     file      |AABBAABB AABBAABB|AABB...        A, B: pieces of ranks 0 and 1
#     window    |AABBAABB AABBAABB|               shared memory: the file's bytes at their places
#     phase 1    every rank's convertor puts its pieces there: one copy, and no message
#     phase 2   |-- rank 0 -|-- rank 1 -|         each writer writes its part as it is
#
# The ranks agree on each window by one allgather of a Row each.  A window without holes is written as it is; that it has none
# shows in its pieces' ends: where pieces tile [low, high), all ends but these two meet a beginning, so
#
#     sum(mix(end) - mix(beginning)) == mix(high) - mix(low)         for a mixing function of 64 bits
#
# A window with holes is read first, where nobody else can write to them meanwhile; else each rank writes its own pieces.
from libc.stdint cimport int64_t

from ompy.core.convertor cimport Convertor
from ompy.core.file cimport Access
from ompy.core.segment cimport Segment
from ompy.mca.fbtl cimport FbtlModule
from ompy.mca.fcoll cimport FcollModule


# What a rank says of itself before the first window.
cdef struct Plan:
    int64_t first, end                           # of its bytes in the file
    int64_t nbytes
    int64_t piece                                # length of its first piece
    int64_t can                                  # Ability, or'ed together
    int64_t window                               # bytes that it would have in a window

cdef enum Ability:
    ORDERED = 1
    FILLS_HOLES = 2                              # nothing but this access is under way

# And of each window.
cdef struct Row:
    int64_t first, end
    int64_t nbytes
    int64_t fingerprint
    int64_t following                            # where its next piece behind the window begins
    int64_t failed                               # error class of what it wrote last


cdef class TwoPhase(FcollModule):
    cdef Py_ssize_t long_piece
    cdef Segment segment
    cdef Plan *plans
    cdef Row *rows

    cdef int plan(self, Access access) except -1
    cdef bint is_gathered(self, str hint) except -1
    cdef bint make_room(self, Py_ssize_t size) except -1


# One rank's part of a collective write under way.
cdef class Assembly:
    cdef TwoPhase module
    cdef FbtlModule fbtl
    cdef Access access
    cdef Convertor cursor, probe                 # over the view
    cdef Convertor memory                        # None where memory is one run
    cdef char *packed
    cdef Py_ssize_t done                         # bytes of this rank's data
    cdef int64_t low, high                       # of the window
    cdef object problem                          # what went wrong here, or None
    cdef int64_t failed                          # its error class

    cdef int agree_on(self, int64_t start, int64_t stop, bint *tiled) except -1
    cdef int fill(self, Py_ssize_t nbytes) except -1
    cdef int store_own(self, Py_ssize_t nbytes) except -1
    cdef char *next_bytes(self, Py_ssize_t nbytes) noexcept nogil
