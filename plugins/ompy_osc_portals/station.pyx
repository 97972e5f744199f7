# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The process of osc/portals on this node's kernel.  See `station.pxd`."""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.errors import ERR_PROC_FAILED
from ompy.core.owner cimport enter, leave
from ompy.mca.btl cimport FLAG_ATOMICS, FLAG_GET, FLAG_PUT, Descriptor, atomic_names
from ompy_puma.btl_wire cimport kernel_over
from ompy_puma.descriptor cimport SENDER_OFFSET, WRITE
from ompy_puma.header cimport Header
from ompy_puma.transmission cimport QUEUED, SENT

# The place in every node's context table.
cdef enum:
    STATION = 5

cdef dict stations = {}                          # id of a kernel -> its Station


cdef Station station_over(Bml bml, uint32_t node, int regions):
    cdef QKernel kernel
    cdef Station station
    enter()                                      # threads that make windows at once share one
    try:
        kernel = kernel_over(bml, node)
        station = stations.get(id(kernel))
        if station is None:
            station = stations[id(kernel)] = Station(kernel, regions)
    finally:
        leave()
    return station


cdef class Station(Btl):
    """Remote memory on portals.

    Parameters:
        kernel: of this node.
        regions: stretches of memory that may be open at a time.
    """

    def __init__(self, QKernel kernel not None, int regions):
        self.name = "portals"
        self.flags = FLAG_PUT | FLAG_GET | FLAG_ATOMICS
        self.kernel = kernel
        self.memory = Memory(kernel, STATION, regions, "osc_portals_regions", PORTALS_OF_COUNTS)
        self.endpoints = {}

    cdef Endpoint endpoint_of(self, Proc proc):
        if proc.index not in self.endpoints:
            self.endpoints[proc.index] = Endpoint(self, proc)
        return self.endpoints[proc.index]

    cdef size_t in_order(self, uint32_t node) except? 0:
        cdef size_t whole
        enter()
        try:
            whole = self.kernel.link_to(node).eager_size
        finally:
            leave()
        return max(whole, sizeof(Header)) - sizeof(Header)

    # -- accesses; an acknowledgement says that they are there, so that there is nothing to flush

    cpdef int put(self, Endpoint endpoint, Descriptor descriptor) except -1:
        """Write a region; complete when its kernel has acknowledged."""
        return self.memory.put(endpoint.proc.index, descriptor)

    cpdef int get(self, Endpoint endpoint, Descriptor descriptor) except -1:
        """Read a region; complete when its kernel has replied."""
        return self.memory.get(endpoint.proc.index, descriptor)

    cpdef int atomic(self, Endpoint endpoint, Descriptor descriptor, str operation, object operand,
                     object compare) except -1:
        """Change a word; complete when its kernel has acknowledged with what it was."""
        return self.memory.change(endpoint.proc.index, descriptor, atomic_names.index(operation), operand, compare)

    # -- counters

    cdef int new_counter(self, int portal, uint64_t bits, uint32_t node) except -1:
        return self.memory.entry_for(portal, bits, node, NULL, 0, WRITE, SENDER_OFFSET)

    cdef int drop_counter(self, int entry) except -1:
        return self.memory.drop_entry(entry)

    cdef int64_t *count(self, int entry) noexcept:
        return <int64_t *> &self.memory.descriptors[self.memory.entries[entry].descriptor].messages

    cdef int count_up(self, int portal, uint64_t bits, uint32_t node) except -1:
        cdef Header header
        cdef int verdict
        memset(&header, 0, sizeof(Header))
        header.portal = portal
        header.match_bits = bits
        verdict = self.kernel.send_app_msg(self.memory, self.memory.capability, node, &header, NULL, 0, 0, NULL)
        return OK if verdict == SENT or verdict == QUEUED else OUT_OF_RESOURCE

    cdef int bury(self, Proc proc) except -1:
        self.kernel.peer_lost(proc.index, proc.failure)
        return self.memory.fail_all(proc.index, ERR_PROC_FAILED)
