# Long vectors: buckets that go round a ring (MPI on portals, 3.2 and figures 9 and 10).
#
#     allgather, 4 ranks     step 0        step 1        step 2
#     rank 0                 0 ->          3 ->          2 ->          each has sent three blocks and has all four
#     rank 1                 1 ->          0 ->          3 ->
#
# A rank lays a single block over the whole vector and tells its left neighbour READY; that one streams the pieces into it, at
# their offsets, so nothing is copied twice.  It passes a piece on when its block's counter says that it is there.
from libc.stdint cimport uint64_t

from ompy.core.operation cimport Operation
from ompy.core.typemap cimport Typemap

from ompy_coll_portals.exchange cimport Exchange

cdef int allgather(Exchange exchange, int phase, char *data, uint64_t *offsets) except -1
# `data`, this rank's operand, is overwritten; its own block then has the result.  `spare` is as long.  The operation commutes.
cdef int reduce_scatter(Exchange exchange, int phase, char *data, char *spare, uint64_t *offsets, Typemap typemap,
                        Operation operation) except -1
