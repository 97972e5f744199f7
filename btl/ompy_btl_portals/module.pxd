# btl/portals: send, put and get as messages to portals.
#
#     process MESSAGES                              queue limit 0: what can't go at once is back-pressure
#       0 ARRIVE -> heap                            active messages; match bits: the tag
#     process MEMORY                                registered regions: put, get and atomics (`ompy_puma/memory.pxd`)
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.proc cimport Proc
from ompy.mca.bml cimport Bml
from ompy.mca.btl cimport Btl, Descriptor, Endpoint

from ompy_puma.kernel cimport QKernel
from ompy_puma.memory cimport Memory
from ompy_puma.process cimport Event, Process


cdef class PortalsEndpoint(Endpoint):
    cdef readonly uint32_t node


cdef class Messages(Process):
    cdef PortalsBtl btl


cdef class PortalsBtl(Btl):
    cdef readonly Btl carrier
    cdef Bml bml
    cdef QKernel kernel
    cdef Messages messages
    cdef Memory memory
    cdef int message_capability
    cdef list endpoints                          # node -> PortalsEndpoint or None
    cdef char *heap
    cdef int heap_descriptor
    cdef char *scratch                           # where header and payload come together
    cdef dict names                              # handle of a region -> its name
    cdef uint64_t regions                        # that there ever were
    cdef readonly uint64_t sent, received, put_bytes, got_bytes

    cdef int transmit(self, PortalsEndpoint endpoint, const char *data, size_t length, int tag) except -1
