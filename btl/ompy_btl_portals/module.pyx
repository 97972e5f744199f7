# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""btl/portals: send, put and get as messages to portals; see `module.pxd`."""
from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from ompy.core.constants cimport OK
from ompy.core.constants cimport OUT_OF_RESOURCE as NO_ROOM
from ompy.core.errors import ERR_PROC_FAILED
from ompy.core.copying cimport copy_bytes
from ompy.core.proc cimport table
from ompy.mca.btl cimport (
    FLAG_ATOMICS, FLAG_GET, FLAG_IN_ORDER, FLAG_NEEDS_REGISTRATION, FLAG_PUT, FLAG_SEND, FLAG_SENDI, INTERFACE, atomic_names,
)
from ompy_btl_portals.carrier import Carrier
from ompy_puma.btl_wire cimport forget_kernel, kernel_over
from ompy_puma.descriptor cimport SAVE_BOTH, make_dynamic
from ompy_puma.header cimport Header
from ompy_puma.heap cimport format_heap, letter_body, release_letter
from ompy_puma.match_list cimport PORTAL_DESCRIPTOR
from ompy_puma.memory cimport handle_of, join
from ompy_puma.process cimport EVENT_DEPOSITED
from ompy_puma.transmission cimport SENT

interface = INTERFACE

# Places in every node's context table, and numbers of the process groups.
cdef enum:
    MESSAGES = 2
    MEMORY = 3

# The one entry of the portal table of MESSAGES.
cdef enum:
    PORTAL_ARRIVE = 0


cdef class PortalsEndpoint(Endpoint):
    """A peer; `node` is its rank in the job."""

    def __init__(self, Btl btl, Proc proc):
        Endpoint.__init__(self, btl, proc)
        self.node = proc.index


cdef class Messages(Process):
    cdef int arrived(self, Event *event) except -1:
        """Hand an active message over straight from the heap."""
        cdef PortalsBtl btl = self.btl
        if event.kind != EVENT_DEPOSITED or event.letter == NULL:
            return 0
        try:
            btl.received += 1
            btl.deliver(<int> (event.header.match_bits & 0xFF), <Endpoint> btl.endpoints[event.header.source_rank],
                        letter_body(event.letter), event.letter.length)
        finally:
            release_letter(btl.heap, event.letter)
        return 0


cdef class PortalsBtl(Btl):
    """Active messages, put and get on portals.

    Parameters:
        carrier: the BTL that the kernel rides on; it keeps messages in order.
        rank: of this process in the job.
        heap_size: bytes in which active messages arrive.
        regions: that may be registered at a time.
    """

    def __init__(self, Btl carrier not None, uint32_t rank, size_t heap_size=1 << 20, int regions=65536):
        self.name = "portals"
        self.flags = FLAG_SEND | FLAG_SENDI | FLAG_PUT | FLAG_GET | FLAG_ATOMICS | FLAG_IN_ORDER | FLAG_NEEDS_REGISTRATION
        self.carrier = carrier
        self.ready = carrier.ready
        self.ready_context = carrier.ready_context
        # Each is one packet, so that it is delivered before the kernel's call is over, and its memory free again.
        self.eager_limit = min(carrier.eager_limit, carrier.max_send_size, heap_size // 4) - sizeof(Header)
        self.max_send_size = self.eager_limit
        self.rndv_eager_limit = min(carrier.rndv_eager_limit, self.eager_limit)
        self.latency = carrier.latency + 300
        self.bandwidth = carrier.bandwidth
        self.endpoints = [None] * len(table)
        heap_size = heap_size // 16 * 16
        self.heap = <char *> calloc(heap_size // 16, 16)
        self.scratch = <char *> malloc(self.eager_limit)
        if self.heap == NULL or self.scratch == NULL:
            raise MemoryError(f"no memory for a heap of {heap_size} bytes")
        format_heap(self.heap, heap_size)
        self.bml = Carrier(carrier)
        self.kernel = kernel_over(self.bml, rank, True)
        carrier.register_error(self.carrier_lost)

        self.messages = Messages(MESSAGES, rank, portals=1, entries=1, descriptors=1, queue_limit=0)
        self.messages.btl = self
        self.heap_descriptor = self.messages.new_descriptor()
        make_dynamic(&self.messages.descriptors[self.heap_descriptor], self.heap, heap_size, SAVE_BOTH, 0)
        self.messages.portals[PORTAL_ARRIVE].kind = PORTAL_DESCRIPTOR
        self.messages.portals[PORTAL_ARRIVE].index = self.heap_descriptor
        self.message_capability = join(self.kernel, self.messages, MESSAGES)
        self.memory = Memory(self.kernel, MEMORY, regions, "btl_portals_regions")
        self.names = {}

    def __dealloc__(self):
        free(self.heap)
        free(self.scratch)

    # -- peers ----------------------------------------------------------------------------------------------------

    cpdef bytes address(self):
        """What the kernel rides on; where it is reached, the carrier's card says."""
        return self.carrier.name.encode()

    cpdef dict cards(self):
        """Ours and the carrier's."""
        return {**self.carrier.cards(), self.name: self.address()}

    cpdef list add_procs(self, list procs):
        """An endpoint for each process whose btl portals rides on the same transport."""
        cdef Proc proc
        answers = []
        for proc in procs:
            theirs = proc.card.get(self.name)
            if theirs != self.address():
                other = theirs.decode("utf-8", "replace") if theirs else "nothing"
                answers.append(f"rides on {self.carrier.name}, the peer on {other}: give every rank the same "
                               f"btl_portals_carrier")
            elif proc.index >= len(self.endpoints):
                answers.append("a process of another job")
            elif proc.index == self.kernel.node and isinstance(own := self.carrier.add_procs([proc])[0], str):
                answers.append(f"rides on {self.carrier.name}, which does not reach the process itself: {own}")
            else:
                if self.endpoints[proc.index] is None:
                    self.endpoints[proc.index] = PortalsEndpoint(self, proc)
                answers.append(self.endpoints[proc.index])
        return answers

    cpdef int del_procs(self, list endpoints) except -1:
        """Forget peers."""
        for endpoint in endpoints:
            self.endpoints[(<PortalsEndpoint?> endpoint).node] = None
        return 0

    def carrier_lost(self, Btl btl, Proc proc, object error):
        """The carrier has lost a peer: what is under way with it fails."""
        self.kernel.peer_lost(proc.index, error)
        self.memory.fail_all(proc.index, ERR_PROC_FAILED)
        self.report_error(proc, error)

    cpdef int finalize(self) except -1:
        """Close the carrier too."""
        if self.bml is not None:
            forget_kernel(self.kernel)
            self.bml.finalize()
            self.bml = None
        return 0

    cpdef dict statistics(self):
        """Our counters, and the carrier's under its name."""
        below = {f"{self.carrier.name}_{name}": number for name, number in self.carrier.statistics().items()}
        return {"messages_sent": self.sent, "messages_received": self.received, "bytes_put": self.put_bytes,
                "bytes_got": self.got_bytes, **below}

    # -- progress: the carrier's, and what the kernel has queued

    cpdef int progress(self) except -1:
        return self.carrier.progress() + self.kernel.progress()

    cpdef int descriptor(self) except -2:
        return self.carrier.descriptor()

    cpdef bint may_sleep(self) except -1:
        return self.carrier.may_sleep()

    cpdef int look_at_peers(self) except -1:
        return self.carrier.look_at_peers()

    # -- active messages ------------------------------------------------------------------------------------------

    cdef int transmit(self, PortalsEndpoint endpoint, const char *data, size_t length, int tag) except -1:
        cdef Header header
        memset(&header, 0, sizeof(header))
        header.portal = PORTAL_ARRIVE
        header.match_bits = tag
        if self.kernel.send_app_msg(self.messages, self.message_capability, endpoint.node, &header, data, length, 0,
                                    NULL) != SENT:
            return NO_ROOM
        self.sent += 1
        return OK

    cpdef int send(self, Endpoint endpoint, Descriptor descriptor, int tag) except -1:
        """Send a descriptor's bytes; it is complete at once."""
        if self.transmit(<PortalsEndpoint?> endpoint, descriptor.data, descriptor.length, tag) != OK:
            return NO_ROOM
        descriptor.complete()
        return OK

    cdef int sendi(self, Endpoint endpoint, const char *header, size_t header_size,
                   const char *payload, size_t payload_size, int tag) except -1:
        if payload_size == 0:
            return self.transmit(<PortalsEndpoint> endpoint, header, header_size, tag)
        memcpy(self.scratch, header, header_size)
        copy_bytes(self.scratch + header_size, payload, payload_size)
        return self.transmit(<PortalsEndpoint> endpoint, self.scratch, header_size + payload_size, tag)

    # -- remote memory --------------------------------------------------------------------------------------------

    cpdef bytes register_mem(self, Endpoint endpoint, size_t address, size_t size):
        """Portals for a region: any peer that is told the handle may write and read it."""
        cdef bytes handle
        self.regions += 1
        handle = handle_of(self.regions, address)
        self.memory.open_region(self.regions, address, size)
        self.names[handle] = self.regions
        return handle

    cpdef int deregister_mem(self, bytes handle) except -1:
        """Take the portals of a region away."""
        return self.memory.close_region(self.names.pop(handle))

    cpdef bint withdraw(self, Endpoint endpoint, size_t address, size_t size) except -1:
        """The kernel drops what the peer asks for there, and copies what it was about to send."""
        return self.kernel.withhold(self.memory, (<PortalsEndpoint?> endpoint).node, <const char *> address, size)

    cpdef int restore(self, Endpoint endpoint, size_t address, size_t size) except -1:
        """The peer may put and get there again."""
        self.memory.restore((<PortalsEndpoint?> endpoint).node, address, size)
        return 0

    cpdef int put(self, Endpoint endpoint, Descriptor descriptor) except -1:
        """Write a peer's region; complete when its kernel has acknowledged."""
        cdef size_t size = descriptor.size
        cdef int taken = self.memory.put((<PortalsEndpoint?> endpoint).node, descriptor)
        self.put_bytes += size if taken == OK else 0
        return taken

    cpdef int get(self, Endpoint endpoint, Descriptor descriptor) except -1:
        """Have a peer's kernel reply with a part of its region; complete when that is here."""
        cdef size_t size = descriptor.size
        cdef int taken = self.memory.get((<PortalsEndpoint?> endpoint).node, descriptor)
        self.got_bytes += size if taken == OK else 0
        return taken

    cpdef int atomic(self, Endpoint endpoint, Descriptor descriptor, str operation, object operand,
                     object compare) except -1:
        """Have a peer's kernel change a word of its region; complete when it has acknowledged."""
        return self.memory.change((<PortalsEndpoint?> endpoint).node, descriptor, atomic_names.index(operation), operand,
                                  compare)
