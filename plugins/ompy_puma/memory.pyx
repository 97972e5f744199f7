# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Memory that other processes write, read and change.  See `memory.pxd`."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from ompy.core.constants cimport OK
from ompy.core.constants cimport OUT_OF_RESOURCE as NO_ROOM
from ompy.core.errors import ERR_NO_MEM, ERR_OTHER, ERR_RMA_RANGE, MPIError
from ompy.core.proc cimport table
from ompy.mca.btl cimport Descriptor
from ompy_puma.capability cimport GroupCapability
from ompy_puma.descriptor cimport (
    ACKNOWLEDGE, BUFFER_FREE, CHANGE, CIRCULAR, READ, SAVE_BODY, SAVE_HEADER, SENDER_OFFSET, WRITE, make_independent,
    make_single,
)
from ompy_puma.header cimport ACKNOWLEDGEMENT, OLD_VALUE, RETURN, Change, Header
from ompy_puma.match_list cimport ANY_GROUP, ANY_RANK, LINK_END, PORTAL_DESCRIPTOR, PORTAL_LIST
from ompy_puma.process cimport EVENT_DEPOSITED, EVENT_DROPPED, EVENT_LOST
from ompy_puma.transmission cimport QUEUED, SENT

# Access.awaited
cdef enum:
    AWAIT_RELEASE = 1
    AWAIT_WORD = 2

# Accesses that may be under way, and answers to those of others, which share what a process has.
cdef enum:
    QUEUE_LIMIT = 1 << 16
    FURTHER_ENTRIES = 1024                       # for what is no region: memory that gets are to land in

# What leads to a region: portal, and its descriptor's operation and options.
OPENINGS = (
    (PORTAL_WRITE, WRITE, SENDER_OFFSET | ACKNOWLEDGE),
    (PORTAL_READ, READ, SENDER_OFFSET),
    (PORTAL_CHANGE, CHANGE, SENDER_OFFSET),
)

cdef struct Handle:
    uint64_t name
    uint64_t address


cdef bytes handle_of(uint64_t name, uint64_t address):
    cdef Handle handle
    handle.name = name
    handle.address = address
    return (<char *> &handle)[:sizeof(Handle)]


cdef int join(QKernel kernel, Process process, int place) except -1:
    kernel.create_context(process, place)
    return process.grant(GroupCapability(place, [(node, place) for node in range(len(table))]))


cdef class Memory(Process):
    """One process's regions, and its accesses to those of its kin: the processes at the same place of the other nodes.

    Parameters:
        kernel: of this node.
        place: in every node's context table, and the number of the process group.
        regions: that may be open at a time.
        limit: what is to be set higher where they are too few.
        portals: further ones, of the owner's; their entries count as regions.
    """

    def __init__(self, QKernel kernel not None, int place, int regions, str limit not None, int portals=0):
        cdef int words, portal, entries = len(OPENINGS) * regions + FURTHER_ENTRIES
        super().__init__(place, kernel.node, portals=MEMORY_PORTALS + portals, entries=entries, descriptors=entries + 1,
                         queue_limit=QUEUE_LIMIT)
        self.qkernel = kernel
        self.limit = limit
        self.accesses = {}
        self.regions = {}
        words = self.new_descriptor()
        make_independent(&self.descriptors[words], &self.words, 1, WRITE, SAVE_HEADER, CIRCULAR)
        for portal in range(self.portal_count):
            self.portals[portal].kind = PORTAL_LIST
            self.portals[portal].index = self.portals[portal].last = LINK_END
        self.portals[<int> PORTAL_WORD].kind = PORTAL_DESCRIPTOR
        self.portals[<int> PORTAL_WORD].index = words
        self.capability = join(kernel, self, place)

    def begun(self):
        """Puts, gets and changes under way."""
        return len(self.accesses)

    # -- regions

    cdef int open_region(self, uint64_t name, uint64_t address, uint64_t size) except -1:
        cdef void *start = <void *> address
        cdef list entries = []
        self.regions[name] = entries
        try:
            for portal, operation, options in OPENINGS:
                entries.append(self.entry_for(portal, name, <uint32_t> ANY_RANK, start, size, operation, options))
        except BaseException:
            self.close_region(name)
            raise
        return 0

    cdef int close_region(self, uint64_t name) except -1:
        for entry in self.regions.pop(name):
            self.drop_entry(entry)
        return 0

    cdef int entry_for(self, int portal, uint64_t bits, uint32_t source, void *address, uint64_t size, int operation,
                       int options) except -1:
        cdef int entry = self.new_entry()
        cdef int descriptor
        if entry < 0:
            raise MPIError(ERR_NO_MEM, f"portals: no more regions of memory than there are now: set {self.limit} higher")
        descriptor = self.new_descriptor()       # there are as many, besides that of the words
        make_single(&self.descriptors[descriptor], <char *> address, size, operation, SAVE_BODY, options)
        self.entries[entry].match_bits = bits
        self.entries[entry].mask = <uint64_t> -1
        self.entries[entry].source_group = ANY_GROUP
        self.entries[entry].source_rank = source
        self.entries[entry].too_long = LINK_END
        self.entries[entry].invalid = LINK_END
        self.entries[entry].descriptor = descriptor
        self.entries[entry].owner = bits
        self.insert(portal, entry, LINK_END)
        return entry

    cdef int drop_entry(self, int entry) except -1:
        self.remove(entry)
        self.qkernel.abandon(self, self.entries[entry].descriptor)
        self.free_descriptor(self.entries[entry].descriptor)
        self.free_entry(entry)
        return 0

    # -- accesses

    cdef bint is_full(self) noexcept:
        """More at once and somebody's might be dropped where they go, or find no entry here to come back to."""
        return len(self.accesses) >= min(<int> FURTHER_ENTRIES, QUEUE_LIMIT // max(<int> len(table), 1))

    cdef Access begin(self, uint32_t node, Descriptor descriptor, int portal, Header *header):
        cdef Access access = Access.__new__(Access)
        cdef const Handle *handle
        if descriptor.remote_handle is None or len(descriptor.remote_handle) != sizeof(Handle):
            raise MPIError(ERR_OTHER, "portals: an access needs the handle of a region of the peer's memory")
        handle = <const Handle *> <const char *> descriptor.remote_handle
        self.serial += 1
        access.descriptor = descriptor
        access.node = node
        access.number = self.serial
        access.entry = -1
        access.awaited = AWAIT_RELEASE | AWAIT_WORD
        self.accesses[access.number] = access
        memset(header, 0, sizeof(Header))
        header.portal = portal
        header.match_bits = handle.name
        header.offset = descriptor.remote_address - handle.address
        header.flags = RETURN
        header.return_portal = PORTAL_WORD
        header.return_match_bits = access.number
        return access

    cdef int launch(self, Access access, Header *header, const char *body, uint64_t length) except -1:
        cdef int verdict
        try:
            verdict = self.qkernel.send_app_msg(self, self.capability, access.node, header, body, length, access.number, NULL)
        except BaseException:
            self.forget(access)
            raise
        if verdict != SENT and verdict != QUEUED:
            self.forget(access)
            return NO_ROOM
        if verdict == SENT:
            self.no_longer(access, AWAIT_RELEASE, 0)
        return OK

    def forget(self, Access access):
        """Nothing is under way, or nobody asks any more."""
        self.accesses.pop(access.number, None)
        if access.entry >= 0:
            self.drop_entry(access.entry)
            access.entry = -1

    cdef int put(self, uint32_t node, Descriptor descriptor) except -1:
        cdef Header header
        cdef Access access
        if self.is_full():
            return NO_ROOM
        access = self.begin(node, descriptor, PORTAL_WRITE, &header)
        return self.launch(access, &header, <const char *> descriptor.local_address, descriptor.size)

    cdef int get(self, uint32_t node, Descriptor descriptor) except -1:
        cdef Header header
        cdef Access access
        if self.is_full():
            return NO_ROOM
        access = self.begin(node, descriptor, PORTAL_READ, &header)
        header.return_portal = PORTAL_LAND
        header.return_length = descriptor.size
        try:
            access.entry = self.entry_for(PORTAL_LAND, access.number, <uint32_t> ANY_RANK, <void *> descriptor.local_address,
                                          descriptor.size, WRITE, 0)
        except MPIError:
            self.forget(access)
            if self.accesses:                    # whose entries others get
                return NO_ROOM
            raise
        return self.launch(access, &header, NULL, 0)

    cdef int change(self, uint32_t node, Descriptor descriptor, int operation, int64_t operand, int64_t compare) except -1:
        cdef Header header
        cdef Access access
        if self.is_full():
            return NO_ROOM
        access = self.begin(node, descriptor, PORTAL_CHANGE, &header)
        access.changes = True
        access.question.operation = operation
        access.question.operand = operand
        access.question.compare = compare
        header.return_length = descriptor.size
        return self.launch(access, &header, <const char *> &access.question, sizeof(Change))

    cdef int no_longer(self, Access access, int what, int status) except -1:
        access.awaited &= ~what
        access.status = access.status or status
        if access.awaited == 0 and access.number in self.accesses:
            self.forget(access)
            access.descriptor.complete(access.status)
        return 0

    cdef int fail_all(self, uint32_t node, int status) except -1:
        cdef Access access
        for access in list(self.accesses.values()):
            if access.node == node:
                self.no_longer(access, AWAIT_RELEASE | AWAIT_WORD, status)
        return 0

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
        """A put or change was carried out, or the target has no such region, or not for us."""
        cdef Access access = self.accesses.get(header.match_bits)
        cdef int64_t old
        if access is None:
            return 0
        whole = header.flags & ACKNOWLEDGEMENT and header.return_length == access.descriptor.size
        if whole and access.changes:
            memcpy(&old, header.user_data + OLD_VALUE, sizeof(old))
            if access.descriptor.size == sizeof(int64_t):
                (<int64_t *> access.descriptor.local_address)[0] = old
            else:
                (<int32_t *> access.descriptor.local_address)[0] = <int32_t> old
        return self.no_longer(access, AWAIT_WORD, 0 if whole else ERR_RMA_RANGE)

    cdef int nothing_there(self, const Header *header) except -1:
        """What fits no region of ours, or whose memory was taken back: who waits for it is told."""
        cdef Header answer
        if not header.flags & RETURN or self.qkernel.reachable(header.source_node) is None:
            return 0
        memset(&answer, 0, sizeof(answer))
        answer.portal = PORTAL_WORD
        answer.match_bits = header.return_match_bits
        self.qkernel.send_app_msg(self, self.capability, header.source_rank, &answer, NULL, 0, 0, NULL)
        return 0

    cdef int sent(self, uint64_t owner, int status) except -1:
        cdef Access access = self.accesses.get(owner)
        if access is not None:
            return self.no_longer(access, AWAIT_RELEASE | (AWAIT_WORD if status else 0), status)
        return 0
