# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""A process of a node.  See `process.pxd`."""
from libc.stdlib cimport calloc, free, realloc

from ompy.core.errors import ERR_ARG, MPIError
from ompy_puma.heap cimport find_letter
from ompy_puma.match_list cimport LINK_END, LINK_NEXT, PORTAL_LIST

# An address map that leaves nothing out but the page at zero.
WHOLE_MEMORY = ((4096, 1 << 63),)


cdef void *array(Py_ssize_t count, size_t size, str what) except NULL:
    cdef void *memory
    if count < 1 or count > 1 << 30:
        raise MPIError(ERR_ARG, f"{what}: 1 to {1 << 30} expected, not {count}")
    memory = calloc(count, size)
    if memory == NULL:
        raise MemoryError(f"no memory for {count} {what}")
    return memory


cdef class Process:
    """One process as its node's kernel knows it.

    Parameters:
        group, rank: its process group, and which of its members it is.
        portals, entries, descriptors: lengths of its arrays.  Pages that are not used cost nothing.
        queue_limit: messages that may stand in the kernel's outgoing queue for it; as many again for its replies and
            acknowledgements, and as many may be matched and not whole.
        memory: (start, end) addresses of its memory; `WHOLE_MEMORY` for a process that is trusted with all of ours.
    """

    def __cinit__(self, *args, **kwargs):
        self.capabilities = []

    def __init__(self, uint32_t group, uint32_t rank, *, int portals=64, int entries=1024, int descriptors=1024,
                 int queue_limit=1024, memory=WHOLE_MEMORY):
        self.group = group
        self.rank = rank
        self.queue_limit = queue_limit
        self.portals = <PortalEntry *> array(portals, sizeof(PortalEntry), "portals")
        self.entries = <MatchEntry *> array(entries, sizeof(MatchEntry), "match entries")
        self.descriptors = <MemoryDescriptor *> array(descriptors, sizeof(MemoryDescriptor), "memory descriptors")
        self.spare_entries = <int32_t *> array(entries, sizeof(int32_t), "match entries")
        self.spare_descriptors = <int32_t *> array(descriptors, sizeof(int32_t), "memory descriptors")
        self.portal_count = portals
        self.entry_count = entries
        self.descriptor_count = descriptors
        for start, end in memory:
            self.extend(start, end)

    def __dealloc__(self):
        free(self.portals)
        free(self.entries)
        free(self.descriptors)
        free(self.spare_entries)
        free(self.spare_descriptors)
        free(self.regions)
        free(self.withheld)

    def extend(self, size_t start, size_t end):
        """For the PCT: adds the addresses from `start` up to `end` to the process's address map."""
        cdef void *larger = realloc(self.regions, (self.region_count + 1) * sizeof(Region))
        if larger == NULL:
            raise MemoryError("no memory for another region of an address map")
        self.regions = <Region *> larger
        self.regions[self.region_count] = Region(start, end)
        self.region_count += 1

    def grant(self, capability):
        """For the PCT: hands the process a capability; returns the index by which it is used."""
        self.capabilities.append(capability)
        return len(self.capabilities) - 1

    def revoke(self, int index):
        """For the PCT: takes a capability away again."""
        self.capabilities[index] = None

    def clear_signals(self):
        """Forget the signals seen so far; returns them."""
        signals = self.signals
        self.signals = 0
        return signals

    @property
    def drop_counts(self):
        """Messages dropped, by reason."""
        return {reason: self.drops[reason] for reason in range(<int> DROP_REASONS) if self.drops[reason]}

    cdef bint allows(self, const void *address, uint64_t length) noexcept nogil:
        cdef size_t start = <size_t> address
        cdef int index
        if length == 0:
            return True
        for index in range(self.region_count):
            if self.regions[index].start <= start < self.regions[index].end:
                return length <= self.regions[index].end - start
        return False

    cdef int withhold(self, uint32_t node, size_t address, uint64_t length) except -1:
        cdef void *larger
        if self.withheld_count == self.withheld_room:
            larger = realloc(self.withheld, (2 * self.withheld_room + 8) * sizeof(Withheld))
            if larger == NULL:
                raise MemoryError("no memory for another stretch that a node may not touch")
            self.withheld = <Withheld *> larger
            self.withheld_room = 2 * self.withheld_room + 8
        self.withheld[self.withheld_count] = Withheld(node, address, address + length)
        self.withheld_count += 1
        return 0

    cdef void restore(self, uint32_t node, size_t address, uint64_t length) noexcept:
        cdef Withheld *stretch
        cdef int index
        for index in range(self.withheld_count):
            stretch = &self.withheld[index]
            if stretch.node == node and stretch.start == address and stretch.end == address + length:
                self.withheld_count -= 1
                stretch[0] = self.withheld[self.withheld_count]
                return

    cdef bint is_withheld(self, uint32_t node, size_t address, uint64_t length) noexcept nogil:
        cdef int index
        for index in range(self.withheld_count):
            if self.withheld[index].node == node and address < self.withheld[index].end \
                    and self.withheld[index].start < address + length:
                return True
        return False

    # -- entries and descriptors

    cdef int new_entry(self) noexcept:
        cdef int entry
        if self.spare_entry_count:
            self.spare_entry_count -= 1
            entry = self.spare_entries[self.spare_entry_count]
        elif self.entries_begun < self.entry_count:
            entry = self.entries_begun
            self.entries_begun += 1
        else:
            return -1
        self.entries[entry] = MatchEntry(0, ~<uint64_t> 0, 0, 0, LINK_END, LINK_NEXT, LINK_NEXT, -1, LINK_END, -1, 0)
        return entry

    cdef void free_entry(self, int entry) noexcept:
        self.entries[entry].descriptor = -1
        self.spare_entries[self.spare_entry_count] = entry
        self.spare_entry_count += 1

    cdef int new_descriptor(self) noexcept:
        if self.spare_descriptor_count:
            self.spare_descriptor_count -= 1
            return self.spare_descriptors[self.spare_descriptor_count]
        if self.descriptors_begun < self.descriptor_count:
            self.descriptors_begun += 1
            return self.descriptors_begun - 1
        return -1

    cdef void free_descriptor(self, int descriptor) noexcept:
        self.descriptors[descriptor].kind = 0
        self.spare_descriptors[self.spare_descriptor_count] = descriptor
        self.spare_descriptor_count += 1

    # -- matching lists

    cdef void insert(self, int portal, int entry, int before) noexcept:
        cdef PortalEntry *head = &self.portals[portal]
        cdef MatchEntry *added = &self.entries[entry]
        if head.kind != PORTAL_LIST:
            head.kind = PORTAL_LIST
            head.index = head.last = LINK_END
        added.portal = portal
        added.no_match = before
        if before == LINK_END:
            added.previous = head.last
            head.last = entry
        else:
            added.previous = self.entries[before].previous
            self.entries[before].previous = entry
        if added.previous == LINK_END:
            head.index = entry
        else:
            self.entries[added.previous].no_match = entry

    cdef void remove(self, int entry) noexcept:
        cdef MatchEntry *removed = &self.entries[entry]
        cdef PortalEntry *head
        if removed.portal < 0:
            return
        head = &self.portals[removed.portal]
        removed.portal = -1
        if removed.previous == LINK_END:
            head.index = removed.no_match
        else:
            self.entries[removed.previous].no_match = removed.no_match
        if removed.no_match == LINK_END:
            head.last = removed.previous
        else:
            self.entries[removed.no_match].previous = removed.previous

    cdef Letter *search_or_activate(self, int heap_descriptor, int portal, int entry, int before) noexcept:
        # The kernel runs with the GIL, in a progress call or a send: neither happens in here.
        cdef Letter *letter = find_letter(self.descriptors[heap_descriptor].start, &self.entries[entry])
        if letter == NULL:
            self.insert(portal, entry, before)
        return letter

    # -- told by the kernel

    cdef int arrived(self, Event *event) except -1:
        return 0

    cdef int sent(self, uint64_t owner, int status) except -1:
        return 0
