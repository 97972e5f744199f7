# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""A pair's packets, kept until they are acknowledged; see `channel.pxd`."""
from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc

from ompy.core.proc cimport Proc
from ompy.mca.btl_wrapper cimport WrapperEndpoint

# A packet's memory above this goes back once it is acknowledged.
cdef size_t KEPT = 4096


cdef class PathRecord(WrapperEndpoint):
    """What acknowledgements tell of a path."""


cdef class Channel:
    """A peer, the packets on their way there, and which of its packets have come."""

    def __init__(self, Proc proc not None):
        self.proc = proc
        self.paths = []

    def __dealloc__(self):
        self.clear()

    cdef void clear(self) noexcept:
        cdef int index
        for index in range(WINDOW):
            free(self.packets[index].bytes)
            self.packets[index].bytes = NULL
            self.packets[index].capacity = 0
            self.packets[index].waiting = False
        self.oldest = self.next_sequence
        self.bytes_under_way = 0
        self.deadline = self.debt_due = 0

    cdef Packet *claim(self, size_t length) except NULL:
        cdef Packet *packet = &self.packets[self.next_sequence % WINDOW]
        if packet.capacity < length:
            free(packet.bytes)
            packet.capacity = 0
            packet.bytes = <char *> malloc(max(length, KEPT))
            if packet.bytes == NULL:
                raise MemoryError(f"no memory for a packet of {length} bytes")
            packet.capacity = max(length, KEPT)
        packet.length = length
        return packet

    cdef void release(self, Packet *packet) noexcept:
        packet.waiting = False
        self.bytes_under_way -= packet.length
        if packet.capacity > KEPT:
            free(packet.bytes)
            packet.bytes = NULL
            packet.capacity = 0

    cdef bint note_arrival(self, uint32_t sequence) noexcept:
        cdef int32_t ahead = <int32_t> (sequence - self.expected)
        if ahead < 0 or ahead >= WINDOW or self.received >> ahead & 1:
            return False
        self.received |= <uint64_t> 1 << ahead
        while self.received & 1:
            self.received >>= 1
            self.expected += 1
        return True

    cdef int settle(self, uint32_t acknowledged, uint64_t received, int64_t now, const Patience *patience) noexcept:
        cdef uint32_t sequence = self.oldest
        cdef int32_t behind
        cdef Packet *packet
        cdef PathRecord path
        cdef int settled = 0
        if <int32_t> (acknowledged - self.oldest) < 0 or <int32_t> (self.next_sequence - acknowledged) < 0:
            return 0                                 # an old one, overtaken by a newer
        while sequence != self.next_sequence:
            packet = &self.packets[sequence % WINDOW]
            behind = <int32_t> (sequence - acknowledged)
            if packet.waiting and (behind < 0 or received >> behind & 1):
                if packet.path != NOWHERE:
                    path = <PathRecord> self.paths[packet.path]
                    path.confirmed = now
                    path.refuses_since = 0
                    if packet.tries == 1:
                        path.misses = 0
                if packet.tries == 1:
                    # Of a packet that was sent twice nobody knows which one was answered (Karn, Partridge, 1987).
                    self.measure(now - packet.sent)
                self.release(packet)
                settled += 1
            sequence += 1
        self.oldest = acknowledged
        if settled:
            self.timeout = min(max(self.round_trip + 4 * self.variation, patience.shortest), patience.longest) \
                if self.round_trip else patience.first
            self.deadline = now + self.timeout if self.bytes_under_way else 0
        return settled

    cdef void measure(self, int64_t sample) noexcept:
        """Mean and mean deviation of the round trip (Jacobson: Congestion Avoidance and Control, 1988)."""
        cdef int64_t error = sample - self.round_trip
        if self.round_trip == 0:
            self.round_trip = max(sample, 1)
            self.variation = sample // 2
            return
        self.round_trip = max(self.round_trip + error // 8, 1)
        self.variation += ((error if error > 0 else -error) - self.variation) // 4
