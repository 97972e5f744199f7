# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Portals for programs in Python: the process of `process.pxd` with methods for what C code does by stores.

    network = Network()
    kernel = QKernel(0, network.wire(0), engine=False)
    alice = Application(group=1, rank=0)
    kernel.create_context(alice)
    alice.grant(GroupCapability(1, [(0, 1)]))       # the PCT's business, see `pct`
    inbox = bytearray(100)
    alice.attach(3, alice.single(inbox))
    alice.send(0, 0, 3, b"to myself")
    network.run()
"""
from libc.stdint cimport int64_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from ompy.core.errors import ERR_ARG, ERR_OTHER, MPIError
from ompy.core.memory cimport address_of, view
from ompy_puma.descriptor cimport (
    BUFFER_FREE, DYNAMIC, SAVE_BODY, SAVE_BOTH, WRITE, Buffer, MemoryDescriptor, make_combined, make_dynamic, make_independent,
    make_overlay, make_single,
)
from ompy_puma.header cimport ACKNOWLEDGEMENT, REPLY, RETURN, USER_DATA
from ompy_puma.heap cimport (
    Heap, Letter, detach_letter, format_heap, letter_body, newer_letter, oldest_letter, release_letter,
)
from ompy_puma.match_list cimport LINK_END, LINK_NEXT, PORTAL_DESCRIPTOR, PORTAL_LIST, PORTAL_NOTHING, MatchEntry, PortalEntry
from ompy_puma.process cimport Event
from ompy_puma.process import DropReason, EventKind
from ompy_puma.transmission import SendVerdict

END = LINK_END
NEXT = LINK_NEXT
ANY = 0xFFFFFFFF
ALL_BITS = 0xFFFFFFFFFFFFFFFF
TABLE_ENTRY = sizeof(Buffer)


cdef class Message:
    """A message's header, as far as a receiver looks at it."""
    cdef readonly uint32_t source_group, source_rank
    cdef readonly uint64_t match_bits, length, offset, return_length
    cdef readonly bint is_acknowledgement, is_reply
    cdef readonly bytes user_data

    def __repr__(self):
        return (f"<Message from rank {self.source_rank} of group {self.source_group}, bits {self.match_bits:#x}, "
                f"{self.length} bytes>")


cdef Message message(const Header *header):
    cdef Message found = Message.__new__(Message)
    found.source_group = header.source_group
    found.source_rank = header.source_rank
    found.match_bits = header.match_bits
    found.length = header.length
    found.offset = header.offset
    found.return_length = header.return_length
    found.is_acknowledgement = header.flags & ACKNOWLEDGEMENT
    found.is_reply = header.flags & REPLY
    found.user_data = (<const char *> header.user_data)[:USER_DATA]
    return found


cdef class Happening:
    """An event, kept: what `process.pxd` calls an Event."""
    cdef readonly object kind, reason
    cdef readonly int portal, entry, refused, descriptor, saved
    cdef readonly uint64_t length, owner
    cdef readonly Message message

    def __repr__(self):
        reason = f" ({self.reason.name})" if self.reason else ""
        return f"<{self.kind.name}{reason} portal {self.portal} entry {self.entry} descriptor {self.descriptor} {self.message}>"


cdef class Kept:
    """A letter in a dynamic block, until it is released."""
    cdef char *start
    cdef Letter *letter
    cdef readonly Message message
    cdef readonly int state                      # LETTER_ARRIVING, LETTER_WHOLE, LETTER_LOST

    @property
    def body(self):
        """The bytes that were saved."""
        return letter_body(self.letter)[:self.letter.length]

    def detach(self):
        """Out of the heap's list; the memory stays taken."""
        detach_letter(self.start, self.letter)

    def release(self):
        """Give the memory back; the letter must not be used afterwards."""
        release_letter(self.start, self.letter)


cdef class Queued:
    """A message that is not out yet; its body must stay as it is.

    Attributes:
        status: None until it is out, then 0, or an error class: it never will be.
    """
    cdef object body
    cdef readonly object status


cdef class Table:
    """The buffer table of an independent or combined block.

    Parameters:
        memories: one a buffer.
        place: memory for the table itself, `TABLE_ENTRY` bytes a buffer, 8-byte aligned; None: its own.
    """
    cdef Buffer *buffers
    cdef readonly int count
    cdef object memories, place

    def __init__(self, memories, place=None):
        cdef int index
        self.memories = list(memories)
        self.count = len(self.memories)
        self.place = bytearray(max(self.count, 1) * sizeof(Buffer)) if place is None else place
        if memoryview(self.place).nbytes < self.count * <Py_ssize_t> sizeof(Buffer):
            raise MPIError(ERR_ARG, f"place: {self.count * sizeof(Buffer)} bytes expected for {self.count} buffers, "
                                    f"not {memoryview(self.place).nbytes}")
        self.buffers = <Buffer *> address_of(self.place)
        for index in range(self.count):
            memset(&self.buffers[index], 0, sizeof(Buffer))
            self.buffers[index].address = <char *> address_of(self.memories[index])
            self.buffers[index].length = memoryview(self.memories[index]).nbytes


cdef class Application(Process):
    """A process that keeps what it is told.

    Parameters:
        group, rank, and the rest: as for `Process`.
    """

    def __init__(self, uint32_t group, uint32_t rank, **arrays):
        super().__init__(group, rank, **arrays)
        self.events = []
        self.held = {}
        self.sending = {}

    # -- what an index stands for; MPIError where there is none such

    cdef MemoryDescriptor *descriptor_at(self, int descriptor) except NULL:
        if not 0 <= descriptor < self.descriptor_count:
            raise MPIError(ERR_ARG, f"descriptor: 0 to {self.descriptor_count - 1} expected, not {descriptor}")
        return &self.descriptors[descriptor]

    cdef MemoryDescriptor *heap_at(self, int descriptor) except NULL:
        if self.descriptor_at(descriptor).kind != DYNAMIC:
            raise MPIError(ERR_ARG, f"descriptor: {descriptor} is no dynamic block")
        return &self.descriptors[descriptor]

    cdef Buffer *buffer_at(self, int descriptor, int number) except NULL:
        cdef MemoryDescriptor *found = self.descriptor_at(descriptor)
        if not 0 <= number < <int64_t> found.buffer_count:
            raise MPIError(ERR_ARG, f"number: descriptor {descriptor} has {found.buffer_count} buffers, and none is {number}")
        return &found.buffers[number]

    cdef MatchEntry *entry_at(self, int entry) except NULL:
        cdef int index
        if not 0 <= entry < self.entry_count:
            raise MPIError(ERR_ARG, f"entry: 0 to {self.entry_count - 1} expected, not {entry}")
        for index in range(self.spare_entry_count):
            if self.spare_entries[index] == entry:
                raise MPIError(ERR_ARG, f"entry: {entry} is not in use")
        if entry >= self.entries_begun:
            raise MPIError(ERR_ARG, f"entry: {entry} is not in use")
        return &self.entries[entry]

    cdef PortalEntry *portal_at(self, int portal) except NULL:
        if not 0 <= portal < self.portal_count:
            raise MPIError(ERR_ARG, f"portal: 0 to {self.portal_count - 1} expected, not {portal}")
        return &self.portals[portal]

    cdef int may_insert(self, int portal, int entry, int before) except -1:
        self.portal_at(portal)
        if self.entry_at(entry).portal >= 0:
            raise MPIError(ERR_ARG, f"entry: {entry} is in the list of portal {self.entries[entry].portal} already")
        if before != LINK_END and self.entry_at(before).portal != portal:
            raise MPIError(ERR_ARG, f"before: entry {before} is not in the list of portal {portal}")
        return 0

    # -- descriptors; each returns the index

    cdef MemoryDescriptor *made(self, int *index) except NULL:
        index[0] = self.new_descriptor()
        if index[0] < 0:
            raise MPIError(ERR_OTHER, f"all {self.descriptor_count} memory descriptors are in use: make the process with more")
        return &self.descriptors[index[0]]

    def single(self, memory, int operation=WRITE, int save=SAVE_BODY, int options=0):
        """A single block over `memory`."""
        cdef int index
        make_single(self.made(&index), <char *> address_of(memory), memoryview(memory).nbytes, operation, save, options)
        self.held[index] = memory
        return index

    def independent(self, memories, int operation=WRITE, int save=SAVE_BODY, int options=0):
        """An independent block of these buffers, or over a `Table`."""
        cdef int index
        cdef Table table = memories if isinstance(memories, Table) else Table(memories)
        make_independent(self.made(&index), table.buffers, table.count, operation, save, options)
        self.held[index] = table
        return index

    def combined(self, memories, int operation=WRITE, int options=0):
        """A combined block of these buffers, or over a `Table`."""
        cdef int index
        cdef Table table = memories if isinstance(memories, Table) else Table(memories)
        make_combined(self.made(&index), table.buffers, table.count, operation, options)
        self.held[index] = table
        return index

    def dynamic(self, memory, int save=SAVE_BOTH, int options=0):
        """A dynamic block: makes `memory` (16-byte aligned) a heap."""
        cdef int index
        cdef char *start = <char *> address_of(memory)
        cdef uint64_t length = memoryview(memory).nbytes
        format_heap(start, length)
        make_dynamic(self.made(&index), start, length, save, options)
        self.held[index] = memory
        return index

    def overlay(self, int below, int save=SAVE_BODY, int options=0):
        """The memory of another descriptor, with other options."""
        cdef int index
        cdef MemoryDescriptor *found = self.descriptor_at(below)
        make_overlay(self.made(&index), found, below, save, options)
        return index

    def discard(self, int descriptor):
        """The descriptor is free for other uses.  Returns what `QKernel.abandon` does."""
        if not self.descriptor_at(descriptor).kind:
            raise MPIError(ERR_ARG, f"descriptor: {descriptor} is not in use")
        under_way = (<QKernel> self.kernel).abandon(self, descriptor) if self.kernel is not None else 0
        self.free_descriptor(descriptor)
        self.held.pop(descriptor, None)
        return under_way

    def set_aside(self, uint32_t node, memory):
        """What is queued for a node out of `memory` goes on from a copy.  Returns what `Transmission.set_aside` does."""
        return (<QKernel?> self.kernel).set_aside(node, <const char *> address_of(memory), memoryview(memory).nbytes)

    def take_back(self, uint32_t node, memory):
        """A node may not touch `memory` any more.  Returns what `QKernel.withhold` does."""
        return (<QKernel?> self.kernel).withhold(self, node, <const char *> address_of(memory), memoryview(memory).nbytes)

    def give_back(self, uint32_t node, memory):
        """It may touch it again."""
        self.restore(node, <size_t> address_of(memory), memoryview(memory).nbytes)

    def counters(self, int descriptor):
        """messages, bytes, dropped, last_drop of a descriptor, and its position."""
        cdef MemoryDescriptor *found = self.descriptor_at(descriptor)
        return {"messages": found.messages, "bytes": found.bytes, "dropped": found.dropped,
                "last_drop": DropReason(found.last_drop), "offset": found.offset, "current": found.current}

    def portal_counters(self, int portal):
        """(delivered, dropped) of a portal."""
        cdef PortalEntry *found = self.portal_at(portal)
        return found.delivered, found.dropped

    def buffer(self, int descriptor, int number):
        """(state, bytes in it, Message) of one buffer of an independent block."""
        cdef Buffer *found = self.buffer_at(descriptor, number)
        return found.state, found.used, message(&found.header)

    def free_buffer(self, int descriptor, int number):
        """The kernel may use a buffer again."""
        self.buffer_at(descriptor, number).state = BUFFER_FREE

    def rewind(self, int descriptor, uint64_t offset=0):
        """Set a receiver's offset."""
        self.descriptor_at(descriptor).offset = offset

    def letters(self, int descriptor):
        """What a dynamic block holds, oldest first."""
        cdef char *start = self.heap_at(descriptor).start
        cdef Letter *letter = oldest_letter(start)
        found = []
        while letter != NULL:
            found.append(kept(start, letter))
            letter = newer_letter(start, letter)
        return found

    def heap_use(self, int descriptor):
        """(bytes taken, most that ever were) of a dynamic block."""
        cdef Heap *heap = <Heap *> self.heap_at(descriptor).start
        return heap.used, heap.most_used

    # -- portals and matching lists

    def attach(self, int portal, int descriptor):
        """Messages to a portal go to a descriptor, without a matching list."""
        cdef PortalEntry *found = self.portal_at(portal)
        found.index = descriptor
        found.kind = PORTAL_DESCRIPTOR

    def close_portal(self, int portal):
        """Messages to a portal are dropped."""
        self.portal_at(portal).kind = PORTAL_NOTHING

    def entry(self, int descriptor, uint64_t match_bits=0, uint64_t mask=ALL_BITS, uint32_t source_group=ANY,
              uint32_t source_rank=ANY, int too_long=LINK_NEXT, int invalid=LINK_NEXT, uint64_t owner=0):
        """A match entry in front of a descriptor; returns its index."""
        cdef int index = self.new_entry()
        if index < 0:
            raise MPIError(ERR_OTHER, f"all {self.entry_count} match entries are in use: make the process with more")
        self.entries[index].match_bits = match_bits
        self.entries[index].mask = mask
        self.entries[index].source_group = source_group
        self.entries[index].source_rank = source_rank
        self.entries[index].too_long = too_long
        self.entries[index].invalid = invalid
        self.entries[index].descriptor = descriptor
        self.entries[index].owner = owner
        return index

    def append(self, int portal, int entry, int before=LINK_END):
        """Put an entry into a portal's list, before another or at the end."""
        self.may_insert(portal, entry, before)
        self.insert(portal, entry, before)

    def withdraw(self, int entry):
        """Take an entry out of its list; it may be put into another."""
        self.entry_at(entry)
        self.remove(entry)

    def forget(self, int entry):
        """Take an entry out, for good."""
        self.entry_at(entry)
        self.remove(entry)
        self.free_entry(entry)

    def link(self, int entry, *, no_match=None, too_long=None, invalid=None):
        """Lay an entry's links by hand: `entry` index, END or NEXT."""
        self.entry_at(entry)
        if no_match is not None:
            self.entries[entry].no_match = no_match
        if too_long is not None:
            self.entries[entry].too_long = too_long
        if invalid is not None:
            self.entries[entry].invalid = invalid

    def start_list(self, int portal, int entry):
        """A portal's list begins at this entry; links are laid by hand."""
        cdef PortalEntry *found = self.portal_at(portal)
        found.index = entry
        found.kind = PORTAL_LIST

    def search(self, int heap_descriptor, int portal, int entry, int before=LINK_END):
        """The oldest letter in a heap that the entry asks for; None: there was none, and the entry is in the list."""
        cdef char *start = self.heap_at(heap_descriptor).start
        self.may_insert(portal, entry, before)
        cdef Letter *letter = self.search_or_activate(heap_descriptor, portal, entry, before)
        return None if letter == NULL else kept(start, letter)

    # -- the arrays themselves, as bytes that the process may write

    @property
    def portal_table(self):
        """The portal table's memory."""
        return view(<size_t> self.portals, self.portal_count * sizeof(PortalEntry))

    @property
    def match_entries(self):
        """The match entries' memory."""
        return view(<size_t> self.entries, self.entry_count * sizeof(MatchEntry))

    @property
    def memory_descriptors(self):
        """The memory descriptors' memory."""
        return view(<size_t> self.descriptors, self.descriptor_count * sizeof(MemoryDescriptor))

    # -- sending

    def send(self, int group, uint32_t rank, uint16_t portal, body=b"", *, uint64_t match_bits=0, uint64_t offset=0,
             answer=None, uint64_t answer_bits=0, uint64_t answer_length=0, uint64_t answer_offset=0, bytes user_data=b""):
        """send_app_msg: to any portal of any process of a group.

        Parameters:
            group: index of a group capability.
            answer: portal here for an acknowledgement or a reply; None for neither.
            answer_bits, answer_offset: with which it comes.
            answer_length: bytes wanted from read memory.
        Returns SENT, REFUSED or OUT_OF_RESOURCE; a `Queued` for what is on its way.
        """
        cdef Header header
        fill(&header, portal, match_bits, offset, answer, answer_bits, answer_length, answer_offset, user_data)
        return self.post(group, False, rank, &header, body)

    def send_server(self, int capability, body=b"", *, uint64_t match_bits=0, uint64_t offset=0, answer=None,
                    uint64_t answer_bits=0, uint64_t answer_length=0, uint64_t answer_offset=0, bytes user_data=b""):
        """send_server_msg: to the one portal of a portal capability."""
        cdef Header header
        fill(&header, 0, match_bits, offset, answer, answer_bits, answer_length, answer_offset, user_data)
        return self.post(capability, True, 0, &header, body)

    cdef object post(self, int capability, bint server, unsigned int rank, Header *header, object body):
        cdef QKernel kernel = <QKernel?> self.kernel
        cdef size_t length = memoryview(body).nbytes
        cdef const char *data = <const char *> address_of(body) if length else NULL
        cdef Queued queued = Queued.__new__(Queued)
        cdef int verdict
        self.numbers += 1
        queued.body = body
        self.sending[self.numbers] = queued
        if server:
            verdict = kernel.send_server_msg(self, capability, header, data, length, self.numbers, NULL)
        else:
            verdict = kernel.send_app_msg(self, capability, rank, header, data, length, self.numbers, NULL)
        if verdict == SendVerdict.QUEUED:
            return queued
        del self.sending[self.numbers]
        return SendVerdict(verdict)

    # -- told by the kernel

    cdef int arrived(self, Event *event) except -1:
        cdef Happening happening
        if self.events is None and self.watcher is None:
            return 0
        happening = Happening.__new__(Happening)
        happening.kind = EventKind(event.kind)
        happening.reason = DropReason(event.reason)
        happening.portal = event.portal
        happening.entry = event.entry
        happening.refused = event.refused
        happening.descriptor = event.descriptor
        happening.saved = event.saved
        happening.length = event.length
        happening.owner = event.owner
        happening.message = message(event.header)
        if self.events is not None:
            self.events.append(happening)
        if self.watcher is not None:
            self.watcher(happening)
        return 0

    cdef int sent(self, uint64_t owner, int status) except -1:
        cdef Queued queued = self.sending.pop(owner)
        queued.body = None
        queued.status = status
        return 0


cdef Kept kept(char *start, Letter *letter):
    cdef Kept found = Kept.__new__(Kept)
    found.start = start
    found.letter = letter
    found.message = message(&letter.header)
    found.state = letter.state
    return found


cdef int fill(Header *header, uint16_t portal, uint64_t match_bits, uint64_t offset, object answer, uint64_t answer_bits,
              uint64_t answer_length, uint64_t answer_offset, bytes user_data) except -1:
    if len(user_data) > USER_DATA:
        raise MPIError(ERR_ARG, f"user_data: at most {USER_DATA} bytes, not {len(user_data)}")
    memset(header, 0, sizeof(Header))
    header.portal = portal
    header.match_bits = match_bits
    header.offset = offset
    if answer is not None:
        header.flags = RETURN
        header.return_portal = answer
        header.return_match_bits = answer_bits
        header.return_length = answer_length
        header.return_offset = answer_offset
    memcpy(header.user_data, <const char *> user_data, len(user_data))
    return 0
