# coll/portals: blocking collectives built straight on portals.
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.communicator cimport Communicator
from ompy.core.typemap cimport Typemap
from ompy.mca.bml cimport Bml
from ompy.mca.coll cimport CollectiveCall, CollModule

from ompy_coll_portals.exchange cimport Exchange

cdef class PortalsModule(CollModule):
    cdef readonly Bml bml
    cdef readonly uint32_t node
    cdef readonly uint64_t short_limit
    cdef readonly int drift                      # collectives that a rank may be ahead of another
    cdef Exchange exchange                       # from the first collective on
    cdef uint64_t *offsets                       # of each rank's block in a vector, and its end

    cdef int set_up(self, Communicator comm) except -1
    cdef bint serves(self, int function, CollectiveCall call) except -1
    cdef uint64_t equal_blocks(self, uint64_t block) noexcept
    cdef uint64_t shared_out(self, Py_ssize_t count, Py_ssize_t unit) noexcept

    cdef int bcast(self, CollectiveCall call) except -1
    cdef int gather(self, CollectiveCall call) except -1
    cdef int scatter(self, CollectiveCall call) except -1
    cdef int allgather(self, CollectiveCall call) except -1
    cdef int reduce(self, CollectiveCall call, bint everywhere) except -1
    cdef int reduce_scatter_block(self, CollectiveCall call) except -1
