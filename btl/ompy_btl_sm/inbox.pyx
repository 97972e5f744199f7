# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Where processes of this host announce the rings that they have made towards this one."""
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from ompy.core.atomic cimport acquire32, release32
from ompy.core.errors import ERR_OTHER, MPIError
from ompy.core.segment cimport Segment, attach, create

cdef extern from "<string.h>":
    size_t strnlen(const char *text, size_t limit) nogil

cdef extern from *:
    """
    static int ompy_claim(uint32_t *state, uint32_t from, uint32_t to) {
        return __atomic_compare_exchange_n(state, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    }
    static void ompy_count(uint32_t *counter) { __atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL); }
    """
    bint claim "ompy_claim"(uint32_t *state, uint32_t present, uint32_t wanted) noexcept nogil
    void count "ompy_count"(uint32_t *counter) noexcept nogil

cdef uint64_t MAGIC = 0x786F626E49796D6F         # "omyInbox", little-endian


cdef size_t segment_size(int slot_count):
    return sizeof(InboxHeader) + slot_count * sizeof(Slot)


cdef class Inbox:
    def __init__(self, int slot_count, str backing):
        self.segment = create("ompy-inbox", segment_size(slot_count), backing)
        self.header = <InboxHeader *> self.segment.address
        self.slots = <Slot *> (self.segment.address + sizeof(InboxHeader))
        self.header.slot_count = slot_count
        self.header.magic = MAGIC

    cdef list arrivals(self):
        cdef Slot *slot
        cdef int index
        found = []
        self.seen = acquire32(&self.header.changes)
        for index in range(<int> self.header.slot_count):
            slot = &self.slots[index]
            if acquire32(&slot.state) == SLOT_ANNOUNCED:
                location = slot.location[:strnlen(slot.location, LOCATION_SIZE)]
                found.append((index, slot.pid, location, slot.ring_size))
                release32(&slot.state, SLOT_TAKEN)
        return found

    cdef int postpone(self, int slot) except -1:
        release32(&self.slots[slot].state, SLOT_ANNOUNCED)
        return 0

    cdef int release_slot(self, int slot) except -1:
        release32(&self.slots[slot].state, SLOT_FREE)
        return 0

    cpdef int close(self) except -1:
        self.segment.close()
        return 0


cdef bint announce(bytes inbox, int slot_count, int pid, bytes location, uint64_t ring_size) except -1:
    """Writes a ring into a peer's inbox; False when every slot is taken."""
    cdef Segment segment = attach(inbox, segment_size(slot_count))
    cdef InboxHeader *header = <InboxHeader *> segment.address
    cdef Slot *slots = <Slot *> (segment.address + sizeof(InboxHeader))
    cdef int attempt, index
    try:
        if header.magic != MAGIC or <int> header.slot_count != slot_count:
            raise MPIError(ERR_OTHER, f"{inbox.decode()} is not the inbox of process {pid} that its card speaks of")
        if len(location) >= LOCATION_SIZE:
            raise MPIError(ERR_OTHER, f"segment location {location.decode()} is longer than {LOCATION_SIZE - 1} bytes")
        for attempt in range(slot_count):
            # Senders begin at different slots, so that they seldom meet.
            index = (pid + attempt) % slot_count
            if claim(&slots[index].state, SLOT_FREE, SLOT_CLAIMED):
                slots[index].pid = pid
                slots[index].ring_size = ring_size
                memcpy(slots[index].location, <char *> location, len(location))
                slots[index].location[len(location)] = 0
                release32(&slots[index].state, SLOT_ANNOUNCED)
                count(&header.changes)
                return True
        return False
    finally:
        segment.close()
