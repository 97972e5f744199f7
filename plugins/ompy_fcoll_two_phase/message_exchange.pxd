# A collective access of ranks that share no memory: each mover has its part of the window for itself, and pieces go there by
# messages.
#
#     rank 0      AA AA AA AA AA AA          its bytes of the window, in the file's order: what a mover gets is one run of them
#                 -mover 0- -mover 1-
#     mover 0     |AABBAABBAABB|             where they belong: rank 0's at 0, 2 bytes each, 3 of them, 4 apart
#
# Each rank tells every mover where its pieces are, in `Piece`s: regular ones are described, not listed.  Then the data go, to
# write to the movers, to read from them; straight from and to the program's memory where that is one run.
from libc.stdint cimport int64_t

from ompy.core.typemap cimport Typemap
from ompy_fcoll_two_phase.exchange cimport Exchange

# How pieces are described, in numbers: place, length; and, with the length below zero, how many there are and how far apart.
cdef enum:
    SINGLE = 2
    REGULAR = 4


cdef class MessageExchange(Exchange):
    cdef int64_t *places                         # of this rank's pieces, one mover's after the other's
    cdef Py_ssize_t room, used                   # numbers in it
    cdef int64_t *others                         # of all ranks' pieces in this rank's part, in rank order
    cdef char *pieces                            # their data
    # For each rank two numbers: of how many its pieces' places are made, and how many bytes they have.
    cdef int64_t *told                           # to it
    cdef int64_t *heard                          # by it

    # What this rank has for each mover: `places`, `told`.
    cdef int describe_pieces(self) except -1
    # What the others have for this one: `others`, `heard`, room for `pieces`; False on all ranks where there is none.
    cdef bint hear(self) except -1
    # Each rank's to each: `field` says which of the two numbers counts them.
    cdef int send_all(self, char *mine, const int64_t *counts, char *theirs, const int64_t *their_counts, int field,
                      Typemap typemap) except -1
    # Everybody's pieces between the part and `pieces`.
    cdef int place_pieces(self, bint packing) noexcept nogil
