# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Nodes of one process.  See `loop_wire.pxd`."""
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove

from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.copying cimport copy_bytes
from ompy.core.errors import ERR_ARG, ERR_OTHER, MPIError


cdef class Network:
    """What the nodes of one process are attached to.

    Parameters:
        packet_size: bytes of the longest packet.
        eager_size: bytes of the longest message that is sent whole where bodies can be fetched.
        can_fetch: nodes can read each other's memory.
        capacity: packets on their way to one node before it takes no more.
        fail_fetches: every fetch fails, as where a transport finds out too late that it may not read.
        calls_back: memory that was offered can be taken back.
    """

    def __init__(self, *, size_t packet_size=4096, size_t eager_size=256, bint can_fetch=False, int capacity=1 << 30,
                 bint fail_fetches=False, bint calls_back=True):
        if packet_size < 256 or eager_size > packet_size:
            raise MPIError(ERR_ARG, f"packet_size: at least 256, and the eager_size of {eager_size}, not {packet_size}")
        self.packet_size = packet_size
        self.eager_size = eager_size if can_fetch else packet_size
        self.can_fetch = can_fetch
        self.capacity = capacity
        self.fail_fetches = fail_fetches
        self.calls_back = calls_back
        self.wires = {}

    def __dealloc__(self):
        cdef Packet *packet
        while self.first != NULL:
            packet = self.first
            self.first = packet.next
            free(packet)

    def wire(self, uint32_t node):
        """A place on the network for the kernel of a node."""
        if node in self.wires:
            raise MPIError(ERR_ARG, f"node: {node} is attached already")
        wire = LoopWire(self, node)
        self.wires[node] = wire
        return wire

    def step(self):
        """Deliver the oldest packet; False when there is none."""
        cdef Packet *packet = self.first
        cdef LoopWire target
        if packet == NULL:
            return False
        self.first = packet.next
        if self.first == NULL:
            self.last = NULL
        target = <LoopWire> self.wires[packet.target]
        target.waiting -= 1
        self.carried += 1
        try:
            (<QKernel> target.kernel).arrive(<char *> (packet + 1), packet.length)
        finally:
            free(packet)
        return True

    def run(self):
        """Deliver packets, and let kernels send what they had queued, until nothing moves; returns the packets delivered."""
        cdef LoopWire wire
        cdef uint64_t before = self.carried
        cdef bint moved = True
        while moved:
            moved = False
            while self.step():
                moved = True
            for wire in self.wires.values():
                if wire.kernel is not None and (<QKernel> wire.kernel).progress():
                    moved = True
        return self.carried - before

    def packets(self):
        """(source, target, bytes) of what is on its way, oldest first."""
        cdef Packet *packet = self.first
        cdef list found = []
        while packet != NULL:
            found.append((packet.source, packet.target, (<char *> (packet + 1))[:packet.length]))
            packet = packet.next
        return found


cdef class LoopWire(Wire):
    """One node's place."""

    def __init__(self, Network network not None, uint32_t node):
        self.network = network
        self.node = node
        self.offered = {}
        self.called_back = []

    cdef Link link(self, uint32_t node):
        cdef LoopWire target = self.network.wires.get(node)
        if target is None:
            raise MPIError(ERR_OTHER, f"no node {node} on this network: {sorted(self.network.wires)} are")
        return LoopLink(self.network, self, target)


cdef class LoopLink(Link):
    """One direction between two nodes."""

    def __init__(self, Network network not None, LoopWire source not None, LoopWire target not None):
        self.network = network
        self.source = source
        self.target = target
        self.node = target.node
        self.packet_size = network.packet_size
        self.eager_size = network.eager_size
        self.can_fetch = network.can_fetch

    cdef int transmit(self, const char *header, size_t header_size, const char *body, size_t body_size) except -1:
        cdef Packet *packet
        if self.target.waiting >= self.network.capacity:
            return OUT_OF_RESOURCE
        packet = <Packet *> malloc(sizeof(Packet) + header_size + body_size)
        if packet == NULL:
            raise MemoryError(f"no memory for a packet of {header_size + body_size} bytes")
        packet.next = NULL
        packet.source = self.source.node
        packet.target = self.target.node
        packet.length = header_size + body_size
        memcpy(packet + 1, header, header_size)
        if body_size:
            copy_bytes(<char *> (packet + 1) + header_size, body, body_size)
        if self.network.last == NULL:
            self.network.first = packet
        else:
            self.network.last.next = packet
        self.network.last = packet
        self.target.waiting += 1
        return OK

    cdef bytes offer(self, const void *address, uint64_t length):
        self.source.offers += 1
        handle = b"%d" % self.source.offers
        self.source.offered[handle] = (<size_t> address, length)
        return handle

    cdef int withdraw(self, bytes handle) except -1:
        self.source.offered.pop(handle, None)
        return 0

    cdef bint call_back(self, const void *address, uint64_t length) except -1:
        if self.network.calls_back:
            self.source.called_back.append((self.target.node, <size_t> address, length))
        return self.network.calls_back

    cdef int restore(self, const void *address, uint64_t length) except -1:
        self.source.called_back.remove((self.target.node, <size_t> address, length))
        return 0

    cdef int fetch(self, char *local, uint64_t remote, uint64_t length, bytes handle, uint64_t slot) except -1:
        # Only what the other node has offered: an address in a packet may be anything.
        start, size = self.target.offered.get(handle, (0, 0))
        cdef bint allowed = start <= remote and remote - start <= size and length <= size - (remote - start)
        for node, back, stretch in self.target.called_back:
            allowed = allowed and (node != self.source.node or remote >= back + stretch or back >= remote + length)
        allowed = allowed and not self.network.fail_fetches
        if allowed:
            memmove(local, <const void *> <size_t> remote, length)
        (<QKernel> self.source.kernel).fetched(slot, 0 if allowed else ERR_OTHER)
        return OK
