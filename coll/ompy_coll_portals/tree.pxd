# Short vectors: a minimum spanning tree over the ranks (MPI on portals, 3.1).
#
#     ranks 0 .. 5, root 1           [0  1  2 | 3  4  5]       1 -> 3
#                                    [0  1 | 2] [3 4 | 5]      1 -> 2, 3 -> 5
#                                    [0 | 1]    [3 | 4]        1 -> 0, 3 -> 4
#
# Each step halves a stretch of ranks; its root sends to the root of the other half, so no two messages of a step share a
# rank.  What fans in takes the same steps backwards.  Stretches are contiguous, so operands meet in rank order.
from libc.stdint cimport uint64_t

from ompy.core.operation cimport Operation
from ompy.core.typemap cimport Typemap

from ompy_coll_portals.exchange cimport Exchange

cdef enum:
    MOST_STEPS = 64

cdef struct Step:
    int peer
    bint above                                   # this rank is the root of the stretch, `peer` of its other half
    int low, high                                # ranks of the half that is not the stretch's root's


# Vectors as bytes; rank r's block is offsets[r] .. offsets[r + 1].  `is_long`: with a handshake, straight into place.
cdef int steps_of(int rank, int size, int root, Step *steps) noexcept nogil
cdef int bcast(Exchange exchange, int root, int phase, char *data, uint64_t length, bint is_long) except -1
cdef int scatter(Exchange exchange, int root, int phase, char *data, uint64_t *offsets, bint is_long) except -1
cdef int gather(Exchange exchange, int root, int phase, char *data, uint64_t *offsets, bint is_long) except -1
# Both `data`, this rank's operand, and `spare` are overwritten; returns where the result of the root lies.
cdef char *reduce(Exchange exchange, int root, int phase, char *data, char *spare, Py_ssize_t count, Typemap typemap,
                  Operation operation, bint is_long) except NULL
cdef int barrier(Exchange exchange, int phase) except -1
