# Where processes of this host announce the rings that they have made towards this one: a shared segment a process.
#
# A sender claims a free slot (compare and swap), writes down where its ring is, publishes the slot, counts up `changes`,
# and rings the doorbell.  The owner looks at `changes` while it polls, and scans the slots only when it has moved; what it has
# mapped needs its slot no more, so that there are as many peers as come, and the slots are for those that come at once.
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.segment cimport Segment

cdef enum:
    LOCATION_SIZE = 108

cdef enum SlotState:
    SLOT_FREE = 0
    SLOT_CLAIMED = 1
    SLOT_ANNOUNCED = 2
    SLOT_TAKEN = 3

cdef struct Slot:
    uint32_t state
    uint32_t pid                                 # the sender's
    uint64_t ring_size
    char location[LOCATION_SIZE]                 # of the ring's segment, ended by a zero
    uint32_t reserved

cdef struct InboxHeader:
    uint64_t magic
    uint32_t slot_count
    char pad0[52]
    uint32_t changes                             # on a line of its own: the owner polls it
    char pad1[60]


cdef class Inbox:
    cdef readonly Segment segment
    cdef InboxHeader *header
    cdef Slot *slots
    cdef uint32_t seen                           # value of `changes` when the slots were last scanned

    cdef list arrivals(self)                     # (slot, pid, location, ring size) of each new ring
    # An arrival is to be one again at the next look.
    cdef int postpone(self, int slot) except -1
    cdef int release_slot(self, int slot) except -1
    cpdef int close(self) except -1


# False: no slot is free now.
cdef bint announce(bytes inbox, int slot_count, int pid, bytes location, uint64_t ring_size) except -1
