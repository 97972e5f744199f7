# btl/portals: send, put and get as messages to portals.
#
#     process MESSAGES                              queue limit 0: what can't go at once is back-pressure
#       0 ARRIVE -> heap                            active messages; match bits: the tag, or that it is for an atomic
#     process MEMORY
#       0 WRITE --> an entry a registered region    put: sender's offset, acknowledged
#       1 READ ---> an entry a registered region    get: the kernel replies
#       2 LAND ---> an entry a get under way        where replies go
#       3 WORD                                      acknowledgements of puts; "nothing there" from targets
#
# A region's name is its match bits at WRITE and READ; its handle is that name and the address that offsets count from.
#
# Portals have no atomics: an order for one is a message, which the target carries out from its progress and answers.
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from ompy.core.proc cimport Proc
from ompy.mca.bml cimport Bml
from ompy.mca.btl cimport Btl, Descriptor, Endpoint

from ompy_puma.descriptor cimport Buffer
from ompy_puma.header cimport Header
from ompy_puma.kernel cimport QKernel
from ompy_puma.process cimport Event, Process

cdef struct Handle:
    uint64_t name
    uint64_t address


# An atomic, asked for or answered: then `operand` is the old value.
cdef struct AtomicOrder:
    Handle region
    uint64_t number
    uint64_t address
    int32_t operation, size, status, padding
    int64_t operand, compare


cdef class PortalsEndpoint(Endpoint):
    cdef readonly uint32_t node


cdef class Messages(Process):
    cdef PortalsBtl btl


cdef class Access:
    """A put or get under way."""
    cdef Descriptor descriptor
    cdef uint64_t number
    cdef uint32_t node
    cdef int entry                               # at LAND, of a get; else -1
    cdef int awaited                             # the kernel's release of our memory, the other side's word
    cdef int status


cdef class Memory(Process):
    cdef PortalsBtl btl
    cdef dict accesses                           # number -> Access
    cdef dict regions                            # handle -> its two entries
    cdef uint64_t serial
    cdef Buffer words

    cdef int entry_for(self, int portal, uint64_t name, void *address, uint64_t size, int operation, int options) except -1
    cdef int drop_entry(self, int entry) except -1
    cdef Access begin(self, PortalsEndpoint endpoint, Descriptor descriptor)
    cdef int refuse(self, Access access) except -1
    cdef int no_longer(self, Access access, int what, int status) except -1
    cdef int heard(self, const Header *header) except -1
    cdef int nothing_there(self, const Header *header) except -1


cdef class PortalsBtl(Btl):
    cdef readonly Btl carrier
    cdef Bml bml
    cdef QKernel kernel
    cdef Messages messages
    cdef Memory memory
    cdef int message_capability, memory_capability
    cdef list endpoints                          # node -> PortalsEndpoint or None
    cdef char *heap
    cdef int heap_descriptor
    cdef char *scratch                           # where header and payload come together
    cdef dict spans                              # handle of a region -> its bytes
    cdef dict atomics                            # number -> (Descriptor, node)
    cdef uint64_t atomic_number
    cdef object answers                          # (PortalsEndpoint, bytes) that found no room
    cdef readonly uint64_t sent, received, put_bytes, got_bytes

    cdef int aim(self, Header *header, int portal, Descriptor descriptor, Access access) except -1
    cdef int transmit(self, PortalsEndpoint endpoint, const char *data, size_t length, int tag) except -1
    cdef int atomic_ordered(self, PortalsEndpoint endpoint, AtomicOrder *order) except -1
    cdef int atomic_answered(self, const AtomicOrder *order) except -1
