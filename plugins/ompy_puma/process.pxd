# A process of a node: its portal table, match entries and descriptors, and what it is told.
#
# The three arrays are the process's own memory: it writes them as it likes, without a call, and the kernel reads them.
# They do not move.  Set-up is stores:
#
#     cdef int d = process.new_descriptor()
#     cdef int e = process.new_entry()
#     make_independent(&process.descriptors[d], &buffer, 1, WRITE, SAVE_BOTH, ACKNOWLEDGE)
#     process.entries[e].match_bits = ...; .mask = ...; .source_rank = ANY_RANK; .descriptor = d; .owner = <uint64_t> ...
#     process.insert(portal, e, before)            # or search_or_activate
#
# A subclass overrides `arrived` and `sent`.  Both run inside the kernel, with the GIL, often from another's progress: they
# may send, insert, remove and free; they may not call `progress`.
from libc.stdint cimport int32_t, uint16_t, uint32_t, uint64_t

from ompy_puma.descriptor cimport Buffer, MemoryDescriptor
from ompy_puma.header cimport Header
from ompy_puma.heap cimport Letter
from ompy_puma.match_list cimport MatchEntry, PortalEntry

cpdef enum EventKind:
    EVENT_MATCHED = 1           # a descriptor has taken a message whose body is still on its way; DEPOSITED or LOST follows
    EVENT_DEPOSITED = 2         # all that this descriptor saves of a message is there
    EVENT_READ = 3              # a reply was sent from this descriptor
    EVENT_DROPPED = 4           # a message came and nothing of it was saved; `reason`
    EVENT_LOST = 5              # the rest of a matched body will not come: its sender is gone, or memory was taken away

cpdef enum DropReason:
    DROP_NONE, DROP_NO_PROCESS, DROP_GROUP, DROP_PORTAL, DROP_EMPTY_PORTAL, DROP_NO_MATCH, DROP_TOO_LONG, DROP_INVALID,
    DROP_FULL, DROP_BROKEN_LIST, DROP_NO_REPLY, DROP_MALFORMED, DROP_STRAY, DROP_LOST, DROP_RESOURCES,
    DROP_REASONS

# Bits of `signals`, set by the kernel, cleared by the process.
cdef enum:
    SIGNAL_ARRIVAL = 1
    SIGNAL_DROP = 2
    SIGNAL_SENT = 4

cdef struct Event:
    EventKind kind
    DropReason reason
    int portal
    int entry                                    # -1: no matching list
    int refused                                  # the last entry that matched and whose too-long link was followed, or -1
    int descriptor
    int saved                                    # SAVE_HEADER, SAVE_BODY, both, or 0
    const Header *header                         # valid during the call
    char *body                                   # where it was put, NULL when there is none or it lies in several places
    uint64_t length                              # bytes of body put there, or read
    Buffer *buffer                               # of an independent block
    Letter *letter                               # of a dynamic block
    uint64_t owner                               # of the entry

cdef struct Region:
    size_t start, end

cdef struct Withheld:
    uint32_t node
    size_t start, end

cdef class Process:
    cdef readonly object kernel                  # QKernel
    cdef readonly uint16_t index                 # in the node's context table
    cdef readonly uint32_t group, rank
    cdef PortalEntry *portals
    cdef MatchEntry *entries
    cdef MemoryDescriptor *descriptors
    cdef readonly int portal_count, entry_count, descriptor_count
    cdef readonly int signals
    cdef uint64_t drops[DROP_REASONS]
    cdef readonly uint64_t refused               # sends without the capability
    # The kernel's and the PCT's
    cdef Region *regions                         # the address map: nothing outside is read or written for this process
    cdef int region_count
    cdef Withheld *withheld                      # what single nodes may not touch for a while
    cdef int withheld_count, withheld_room
    cdef list capabilities                       # index -> Capability or None
    cdef int queued, answers                     # entries in the outgoing queue: its own, and kernel's answers for it
    cdef int arriving                            # messages matched and not whole
    cdef readonly int queue_limit
    # The library's: entries and descriptors below `begun` are in use or spare.
    cdef int32_t *spare_entries
    cdef int32_t *spare_descriptors
    cdef int spare_entry_count, spare_descriptor_count, entries_begun, descriptors_begun

    # -- for the owner; -1: all in use
    cdef int new_entry(self) noexcept
    cdef void free_entry(self, int entry) noexcept
    cdef int new_descriptor(self) noexcept
    cdef void free_descriptor(self, int descriptor) noexcept
    # Into a portal's list, before another entry (LINK_END: at the end).  `too_long` and `invalid` stay as they are.
    cdef void insert(self, int portal, int entry, int before) noexcept
    cdef void remove(self, int entry) noexcept
    # Searches the heap of a descriptor for what the entry asks for; only when it holds none, inserts the entry.  One step:
    # no message can arrive in between.  The letter, oldest first, or NULL: the entry is active.
    cdef Letter *search_or_activate(self, int heap_descriptor, int portal, int entry, int before) noexcept

    # -- told by the kernel
    cdef int arrived(self, Event *event) except -1
    # A message that `send` had QUEUED is out (status 0) or never will be (an error class).
    cdef int sent(self, uint64_t owner, int status) except -1

    # For `QKernel.withhold`; as often as it was called, `restore`.
    cdef int withhold(self, uint32_t node, size_t address, uint64_t length) except -1
    cdef void restore(self, uint32_t node, size_t address, uint64_t length) noexcept
    cdef bint is_withheld(self, uint32_t node, size_t address, uint64_t length) noexcept nogil

    cdef bint allows(self, const void *address, uint64_t length) noexcept nogil
