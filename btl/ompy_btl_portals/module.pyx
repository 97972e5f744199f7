# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""btl/portals: send, put and get as messages to portals; see `module.pxd`."""
from collections import deque

from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from ompy.core.constants cimport OK
from ompy.core.constants cimport OUT_OF_RESOURCE as NO_ROOM
from ompy.core.errors import ERR_NO_MEM, ERR_OTHER, ERR_PROC_FAILED, ERR_RMA_RANGE, MPIError
from ompy.core.proc cimport table
from ompy.mca.btl cimport (
    FLAG_ATOMICS, FLAG_GET, FLAG_IN_ORDER, FLAG_NEEDS_REGISTRATION, FLAG_PUT, FLAG_SEND, FLAG_SENDI, INTERFACE, TAG_COUNT,
    atomic_names, carry_out_atomic,
)
from ompy_btl_portals.carrier import Carrier
from ompy_puma.btl_wire cimport forget_kernel, kernel_over
from ompy_puma.capability cimport GroupCapability
from ompy_puma.descriptor cimport (
    ACKNOWLEDGE, BUFFER_FREE, CIRCULAR, READ, SAVE_BODY, SAVE_BOTH, SAVE_HEADER, SENDER_OFFSET, WRITE, make_dynamic,
    make_independent, make_single,
)
from ompy_puma.header cimport ACKNOWLEDGEMENT, RETURN
from ompy_puma.heap cimport format_heap, letter_body, release_letter
from ompy_puma.transmission cimport QUEUED, SENT
from ompy_puma.match_list cimport ANY_GROUP, ANY_RANK, LINK_END, PORTAL_DESCRIPTOR, PORTAL_LIST
from ompy_puma.process cimport EVENT_DEPOSITED, EVENT_DROPPED, EVENT_LOST

interface = INTERFACE

# Places in every node's context table, and numbers of the process groups.
cdef enum:
    MESSAGES = 2
    MEMORY = 3

# Entries of their portal tables.
cdef enum:
    PORTAL_ARRIVE = 0
    PORTAL_WRITE = 0
    PORTAL_READ = 1
    PORTAL_LAND = 2
    PORTAL_WORD = 3
    PORTALS = 4

# Match bits of messages that are not active ones: these have a tag below 256.
cdef enum:
    ATOMIC_ORDER = 256
    ATOMIC_ANSWER = 512

# Access.awaited
cdef enum:
    AWAIT_RELEASE = 1
    AWAIT_WORD = 2

# Puts and gets that may be under way, and answers to those of others.
QUEUE_LIMIT = 1 << 16


cdef class PortalsEndpoint(Endpoint):
    """A peer; `node` is its rank in the job."""

    def __init__(self, Btl btl, Proc proc):
        Endpoint.__init__(self, btl, proc)
        self.node = proc.index


cdef class Messages(Process):
    cdef int arrived(self, Event *event) except -1:
        """Hand an active message over straight from the heap."""
        cdef PortalsBtl btl = self.btl
        cdef AtomicOrder order
        if event.kind != EVENT_DEPOSITED or event.letter == NULL:
            return 0
        try:
            if event.header.match_bits & (ATOMIC_ORDER | ATOMIC_ANSWER):
                if event.letter.length == sizeof(AtomicOrder):
                    memcpy(&order, letter_body(event.letter), sizeof(AtomicOrder))
                    if event.header.match_bits & ATOMIC_ANSWER:
                        btl.atomic_answered(&order)
                    else:
                        btl.atomic_ordered(<PortalsEndpoint> btl.endpoints[event.header.source_rank], &order)
                return 0
            btl.received += 1
            btl.deliver(<int> (event.header.match_bits & 0xFF), <Endpoint> btl.endpoints[event.header.source_rank],
                        letter_body(event.letter), event.letter.length)
        finally:
            release_letter(btl.heap, event.letter)
        return 0


cdef class Memory(Process):
    def begun(self):
        """Puts and gets under way."""
        return len(self.accesses)

    # -- regions

    cdef int entry_for(self, int portal, uint64_t name, void *address, uint64_t size, int operation, int options) except -1:
        cdef int entry = self.new_entry()
        cdef int descriptor = self.new_descriptor()
        if entry < 0 or descriptor < 0:
            raise MPIError(ERR_NO_MEM, f"btl portals: {self.entry_count // 2} regions are registered already; set "
                                       f"btl_portals_regions higher")
        make_single(&self.descriptors[descriptor], <char *> address, size, operation, SAVE_BODY, options)
        self.entries[entry].match_bits = name
        self.entries[entry].mask = <uint64_t> -1
        self.entries[entry].source_group = ANY_GROUP
        self.entries[entry].source_rank = ANY_RANK
        self.entries[entry].too_long = LINK_END
        self.entries[entry].invalid = LINK_END
        self.entries[entry].descriptor = descriptor
        self.entries[entry].owner = name
        self.insert(portal, entry, LINK_END)
        return entry

    cdef int drop_entry(self, int entry) except -1:
        self.remove(entry)
        self.btl.kernel.abandon(self, self.entries[entry].descriptor)
        self.free_descriptor(self.entries[entry].descriptor)
        self.free_entry(entry)
        return 0

    # -- puts and gets

    cdef Access begin(self, PortalsEndpoint endpoint, Descriptor descriptor):
        cdef Access access = Access.__new__(Access)
        self.serial += 1
        access.descriptor = descriptor
        access.node = endpoint.node
        access.number = self.serial
        access.entry = -1
        access.awaited = AWAIT_RELEASE | AWAIT_WORD
        self.accesses[access.number] = access
        return access

    cdef int refuse(self, Access access) except -1:
        """Nothing was taken."""
        del self.accesses[access.number]
        if access.entry >= 0:
            self.drop_entry(access.entry)
        return NO_ROOM

    cdef int no_longer(self, Access access, int what, int status) except -1:
        access.awaited &= ~what
        access.status = access.status or status
        if access.awaited == 0 and self.accesses.pop(access.number, None) is not None:
            if access.entry >= 0:
                self.drop_entry(access.entry)
            access.descriptor.complete(access.status)
        return 0

    def fail_all(self, uint32_t node, int status):
        """The node is gone."""
        cdef Access access
        for access in list(self.accesses.values()):
            if access.node == node:
                self.no_longer(access, AWAIT_RELEASE | AWAIT_WORD, status)

    # -- told by the kernel

    cdef int arrived(self, Event *event) except -1:
        cdef Access access
        if event.kind == EVENT_DROPPED or (event.kind == EVENT_LOST and event.portal == PORTAL_WRITE):
            return self.nothing_there(event.header)
        if event.portal == PORTAL_WORD:
            self.words.state = BUFFER_FREE
            return self.heard(event.header)
        if event.portal == PORTAL_LAND and event.kind in (EVENT_DEPOSITED, EVENT_LOST):
            access = self.accesses.get(event.owner)
            if access is not None:
                whole = event.kind == EVENT_DEPOSITED and event.length == access.descriptor.size
                return self.no_longer(access, AWAIT_WORD, 0 if whole else ERR_OTHER)
        return 0

    cdef int heard(self, const Header *header) except -1:
        """A put was carried out, or the target has no such region, or not for us."""
        cdef Access access = self.accesses.get(header.match_bits)
        if access is None:
            return 0
        whole = header.flags & ACKNOWLEDGEMENT and header.return_length == access.descriptor.size
        return self.no_longer(access, AWAIT_WORD, 0 if whole else ERR_RMA_RANGE)

    cdef int nothing_there(self, const Header *header) except -1:
        """A put or get that fits no region of ours, or whose memory was taken back: who waits for it is told."""
        cdef Header answer
        if not header.flags & RETURN or self.btl.kernel.reachable(header.source_node) is None:
            return 0
        memset(&answer, 0, sizeof(answer))
        answer.portal = PORTAL_WORD
        answer.match_bits = header.return_match_bits
        self.btl.kernel.send_app_msg(self, self.btl.memory_capability, header.source_rank, &answer, NULL, 0, 0, NULL)
        return 0

    cdef int sent(self, uint64_t owner, int status) except -1:
        cdef Access access = self.accesses.get(owner)
        if access is not None:
            return self.no_longer(access, AWAIT_RELEASE | (AWAIT_WORD if status else 0), status)
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
        cdef int words
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
        self.message_capability = self.join(self.messages, MESSAGES)

        self.memory = Memory(MEMORY, rank, portals=PORTALS, entries=2 * regions + 1024, descriptors=2 * regions + 1024,
                             queue_limit=QUEUE_LIMIT)
        self.memory.btl = self
        self.memory.accesses = {}
        self.memory.regions = {}
        self.spans = {}
        self.atomics = {}
        self.answers = deque()
        words = self.memory.new_descriptor()
        make_independent(&self.memory.descriptors[words], &self.memory.words, 1, WRITE, SAVE_HEADER, CIRCULAR)
        self.memory.portals[PORTAL_WORD].kind = PORTAL_DESCRIPTOR
        self.memory.portals[PORTAL_WORD].index = words
        for portal in (PORTAL_WRITE, PORTAL_READ, PORTAL_LAND):
            self.memory.portals[portal].kind = PORTAL_LIST
            self.memory.portals[portal].index = self.memory.portals[portal].last = LINK_END
        self.memory_capability = self.join(self.memory, MEMORY)

    def __dealloc__(self):
        free(self.heap)
        free(self.scratch)

    def join(self, Process process not None, int place):
        """Give a process of ours its place, the same on every node, and the right to send to its kin."""
        self.kernel.create_context(process, place)
        return process.grant(GroupCapability(place, [(node, place) for node in range(len(table))]))

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
        for number in [number for number, (_, node) in self.atomics.items() if node == proc.index]:
            (<Descriptor> self.atomics.pop(number)[0]).complete(ERR_PROC_FAILED)
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
        cdef int events = self.carrier.progress() + self.kernel.progress()
        while self.answers:
            endpoint, text = self.answers[0]
            if self.transmit(<PortalsEndpoint> endpoint, <char *> <bytes> text, sizeof(AtomicOrder), ATOMIC_ANSWER) != OK:
                break
            self.answers.popleft()
            events += 1
        return events

    cpdef int descriptor(self) except -2:
        return self.carrier.descriptor()

    cpdef bint may_sleep(self) except -1:
        return not self.answers and self.carrier.may_sleep()

    # -- active messages ------------------------------------------------------------------------------------------

    cdef int transmit(self, PortalsEndpoint endpoint, const char *data, size_t length, int tag) except -1:
        cdef Header header
        memset(&header, 0, sizeof(header))
        header.portal = PORTAL_ARRIVE
        header.match_bits = tag
        if self.kernel.send_app_msg(self.messages, self.message_capability, endpoint.node, &header, data, length, 0,
                                    NULL) != SENT:
            return NO_ROOM
        self.sent += tag < TAG_COUNT
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
        memcpy(self.scratch + header_size, payload, payload_size)
        return self.transmit(<PortalsEndpoint> endpoint, self.scratch, header_size + payload_size, tag)

    # -- remote memory --------------------------------------------------------------------------------------------

    cpdef bytes register_mem(self, Endpoint endpoint, size_t address, size_t size):
        """Portals for a region: any peer that is told the handle may write and read it."""
        cdef Memory memory = self.memory
        cdef Handle handle
        cdef bytes packed
        memory.serial += 1
        handle.name = memory.serial
        handle.address = address
        packed = (<char *> &handle)[:sizeof(Handle)]
        memory.regions[packed] = (
            memory.entry_for(PORTAL_WRITE, handle.name, <void *> address, size, WRITE, SENDER_OFFSET | ACKNOWLEDGE),
            memory.entry_for(PORTAL_READ, handle.name, <void *> address, size, READ, SENDER_OFFSET),
        )
        self.spans[packed] = size
        return packed

    cpdef int deregister_mem(self, bytes handle) except -1:
        """Take the portals of a region away."""
        del self.spans[handle]
        for entry in self.memory.regions.pop(handle):
            self.memory.drop_entry(entry)
        return 0

    cpdef bint withdraw(self, Endpoint endpoint, size_t address, size_t size) except -1:
        """The kernel drops what the peer asks for there, and copies what it was about to send."""
        return self.kernel.withhold(self.memory, (<PortalsEndpoint?> endpoint).node, <const char *> address, size)

    cpdef int restore(self, Endpoint endpoint, size_t address, size_t size) except -1:
        """The peer may put and get there again."""
        self.memory.restore((<PortalsEndpoint?> endpoint).node, address, size)
        return 0

    cdef int aim(self, Header *header, int portal, Descriptor descriptor, Access access) except -1:
        cdef const Handle *handle
        if descriptor.remote_handle is None or len(descriptor.remote_handle) != sizeof(Handle):
            raise MPIError(ERR_OTHER, "btl portals: a put or get needs the handle of the peer's registered memory")
        handle = <const Handle *> <const char *> descriptor.remote_handle
        memset(header, 0, sizeof(Header))
        header.portal = portal
        header.match_bits = handle.name
        header.offset = descriptor.remote_address - handle.address
        header.flags = RETURN
        header.return_match_bits = access.number
        return 0

    cpdef int put(self, Endpoint endpoint, Descriptor descriptor) except -1:
        """Write a peer's region; complete when its kernel has acknowledged."""
        cdef Access access = self.memory.begin(<PortalsEndpoint?> endpoint, descriptor)
        cdef Header header
        cdef int verdict
        self.aim(&header, PORTAL_WRITE, descriptor, access)
        header.return_portal = PORTAL_WORD
        verdict = self.kernel.send_app_msg(self.memory, self.memory_capability, access.node, &header,
                                           <const char *> descriptor.local_address, descriptor.size, access.number, NULL)
        if verdict != SENT and verdict != QUEUED:
            return self.memory.refuse(access)
        self.put_bytes += descriptor.size
        if verdict == SENT:
            self.memory.no_longer(access, AWAIT_RELEASE, 0)
        return OK

    cpdef int get(self, Endpoint endpoint, Descriptor descriptor) except -1:
        """Have a peer's kernel reply with a part of its region; complete when that is here."""
        cdef Access access = self.memory.begin(<PortalsEndpoint?> endpoint, descriptor)
        cdef Header header
        cdef int verdict
        self.aim(&header, PORTAL_READ, descriptor, access)
        header.return_portal = PORTAL_LAND
        header.return_length = descriptor.size
        access.entry = self.memory.entry_for(PORTAL_LAND, access.number, <void *> descriptor.local_address, descriptor.size,
                                             WRITE, 0)
        verdict = self.kernel.send_app_msg(self.memory, self.memory_capability, access.node, &header, NULL, 0,
                                           access.number, NULL)
        if verdict != SENT and verdict != QUEUED:
            return self.memory.refuse(access)
        self.got_bytes += descriptor.size
        if verdict == SENT:
            self.memory.no_longer(access, AWAIT_RELEASE, 0)
        return OK

    # -- atomics --------------------------------------------------------------------------------------------------

    cpdef int atomic(self, Endpoint endpoint, Descriptor descriptor, str operation, object operand,
                     object compare) except -1:
        """Change a word of a peer's region; complete when the peer has answered."""
        cdef PortalsEndpoint peer = <PortalsEndpoint?> endpoint
        cdef AtomicOrder order
        if descriptor.remote_handle is None or len(descriptor.remote_handle) != sizeof(Handle):
            raise MPIError(ERR_OTHER, "btl portals: an atomic needs the handle of the peer's registered memory")
        memset(&order, 0, sizeof(AtomicOrder))
        memcpy(&order.region, <char *> descriptor.remote_handle, sizeof(Handle))
        order.number = self.atomic_number + 1
        order.address = descriptor.remote_address
        order.operation = atomic_names.index(operation)
        order.size = <int32_t> descriptor.size
        order.operand = operand
        order.compare = compare
        if self.transmit(peer, <char *> &order, sizeof(AtomicOrder), ATOMIC_ORDER) != OK:
            return NO_ROOM
        self.atomic_number = order.number
        self.atomics[order.number] = (descriptor, peer.node)
        return OK

    cdef int atomic_ordered(self, PortalsEndpoint endpoint, AtomicOrder *order) except -1:
        cdef bytes text = (<char *> &order.region)[:sizeof(Handle)]
        cdef uint64_t offset = order.address - order.region.address, size = self.spans.get(text, 0)
        order.status = ERR_RMA_RANGE
        if endpoint is None:
            return 0
        if offset < size and order.size > 0 and <uint64_t> order.size <= size - offset:
            try:
                carry_out_atomic(<void *> order.address, order.size, atomic_names[order.operation], order.operand,
                                 order.compare, &order.operand)
                order.status = 0
            except (IndexError, MPIError):
                pass                             # the origin is told
        if self.answers or self.transmit(endpoint, <char *> order, sizeof(AtomicOrder), ATOMIC_ANSWER) != OK:
            self.answers.append((endpoint, (<char *> order)[:sizeof(AtomicOrder)]))
        return 0

    cdef int atomic_answered(self, const AtomicOrder *order) except -1:
        cdef Descriptor descriptor
        access = self.atomics.pop(order.number, None)
        if access is not None:
            descriptor = access[0]
            if order.status == 0:
                memcpy(<void *> descriptor.local_address, &order.operand, descriptor.size)
            descriptor.complete(order.status)
        return 0
