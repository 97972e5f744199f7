# The process of osc/portals on this node's kernel, for all windows; a `Btl` as far as remote memory goes.
#
#     WRITE, READ, CHANGE, LAND, WORD            regions and accesses (`ompy_puma/memory.pxd`)
#     POSTED ---> an entry a rank of a window    match bits: the window's context; the kernel counts its messages,
#     COMPLETED -> an entry a rank of a window   which are empty
#
# While there is a window, a thread stands for the interrupts by which messages enter a kernel while its processor computes.
from libc.stdint cimport int64_t, uint32_t, uint64_t

from ompy.core.proc cimport Proc
from ompy.mca.bml cimport Bml
from ompy.mca.btl cimport Btl, Endpoint

from ompy_puma.kernel cimport QKernel
from ompy_puma.memory cimport MEMORY_PORTALS, Memory

cdef enum:
    PORTAL_POSTED = MEMORY_PORTALS
    PORTAL_COMPLETED = MEMORY_PORTALS + 1
    PORTALS_OF_COUNTS = 2


cdef class Station(Btl):
    cdef QKernel kernel
    cdef Memory memory
    cdef dict endpoints                          # node -> Endpoint

    cdef Endpoint endpoint_of(self, Proc proc)
    # Bytes of the longest access that its node carries out in its order: the bodies of longer ones may be fetched later.
    cdef size_t in_order(self, uint32_t node) except? 0
    # An entry that counts what a node sends to it.
    cdef int new_counter(self, int portal, uint64_t bits, uint32_t node) except -1
    cdef int drop_counter(self, int entry) except -1
    cdef int64_t *count(self, int entry) noexcept
    # One more at a node's counter; OUT_OF_RESOURCE: not yet.
    cdef int count_up(self, int portal, uint64_t bits, uint32_t node) except -1
    # All that is under way with a node that has died is over.
    cdef int bury(self, Proc proc) except -1


# The one on the kernel over these BTLs, made at the first call.  `regions`: that all its windows may have.
cdef Station station_over(Bml bml, uint32_t node, int regions)
