# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The outgoing message queue.  Pictured in `outgoing.pxd`."""
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Realloc
from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.errors import ERR_OTHER
from ompy_puma.events cimport Way, tell
from ompy_puma.header cimport PACKET_FRAGMENT, PACKET_OFFER, PACKET_OPENING, PLAIN, Transfer, header_size
from ompy_puma.placement cimport read, settle
from ompy_puma.process cimport EVENT_LOST, EVENT_READ, SIGNAL_SENT


cdef struct Front:
    Header header
    Transfer transfer


cdef void begin(Front *front, int kind, const Outgoing *entry) noexcept nogil:
    memset(&front.transfer, 0, sizeof(Transfer))
    front.header = entry.header
    front.header.kind = kind
    front.header.flags &= ~PLAIN                 # what follows is found behind a whole header
    front.transfer.number = entry.number


cdef class OutgoingQueue:
    """The queue of one node.

    Parameters:
        node: this node's number.
    """

    def __cinit__(self, uint32_t node):
        self.node = node
        self.busy = []

    def __dealloc__(self):
        cdef uint32_t slot
        for slot in range(self.slot_count):
            Py_XDECREF(<PyObject *> self.slots[slot].process)
            Py_XDECREF(<PyObject *> self.slots[slot].handle)
            free(self.slots[slot].copy)
            PyMem_Free(self.slots[slot])
        PyMem_Free(self.slots)
        PyMem_Free(self.packet)

    # -- entries

    cdef Outgoing *new(self, Process process, bint answer) except NULL:
        cdef Outgoing *entry = self.spare
        cdef void *larger
        cdef uint64_t slot
        if entry != NULL:
            self.spare = entry.next
            slot = entry.number & 0xFFFFFFFF
        else:
            if self.slot_count == self.slot_room:
                larger = PyMem_Realloc(self.slots, (2 * self.slot_room + 64) * sizeof(Outgoing *))
                if larger == NULL:
                    raise MemoryError("no memory for the outgoing message queue")
                self.slots = <Outgoing **> larger
                self.slot_room = 2 * self.slot_room + 64
            entry = <Outgoing *> PyMem_Calloc(1, sizeof(Outgoing))
            if entry == NULL:
                raise MemoryError("no memory for the outgoing message queue")
            slot = self.slot_count
            self.slots[slot] = entry
            self.slot_count += 1
        self.generation = (self.generation + 1) & 0xFFFFFFFF
        entry.number = self.generation << 32 | slot
        entry.next = NULL
        entry.handle = NULL
        entry.flag = NULL
        entry.body = entry.copy = NULL
        entry.called_back = NULL
        entry.done = entry.length = entry.owner = 0
        entry.reply = False
        entry.answer = answer
        entry.process = NULL
        if process is not None:
            Py_INCREF(process)
            entry.process = <void *> process
            if answer:
                process.answers += 1
            else:
                process.queued += 1
        return entry

    cdef Outgoing *find(self, uint64_t number) noexcept:
        cdef uint64_t slot = number & 0xFFFFFFFF
        if slot >= self.slot_count or self.slots[slot].number != number or self.slots[slot].stage == STAGE_FREE:
            return NULL
        return self.slots[slot]

    cdef void replies_to(self, Outgoing *entry, const Placement *source, const Header *question) noexcept:
        entry.reply = True
        entry.source = source[0]
        entry.question = question[0]
        entry.previous_reply = NULL
        entry.next_reply = self.replies
        if self.replies != NULL:
            self.replies.previous_reply = entry
        self.replies = entry

    cdef int finish(self, Outgoing *entry, int status) except -1:
        """The entry is out, or never will be.  It is free before anybody is told, since whoever is told may send."""
        cdef Process process = <Process> entry.process if entry.process != NULL else None
        cdef Link link = <Link> entry.link
        cdef uint64_t owner = entry.owner
        cdef int *flag = entry.flag
        cdef bint answer = entry.answer, reply = entry.reply
        cdef bint inside = self.within == entry
        cdef Placement source = entry.source
        cdef Header question = entry.question
        cdef Way way
        way.portal = entry.portal
        way.entry = entry.entry
        way.refused = -1
        if entry.handle != NULL:
            link.withdraw(<bytes> entry.handle)
            Py_XDECREF(<PyObject *> entry.handle)
            entry.handle = NULL
        if entry.called_back != NULL:
            link.restore(entry.called_back, entry.called_back_length)
            entry.called_back = NULL
        free(entry.copy)
        entry.copy = NULL
        if reply:
            if entry.next_reply != NULL:
                entry.next_reply.previous_reply = entry.previous_reply
            if entry.previous_reply != NULL:
                entry.previous_reply.next_reply = entry.next_reply
            else:
                self.replies = entry.next_reply
        Py_XDECREF(<PyObject *> entry.process)
        entry.process = NULL
        entry.stage = STAGE_FREE
        entry.next = self.spare
        self.spare = entry
        if process is None:
            return 0
        if answer:
            process.answers -= 1
            if reply:
                settle(&source, status == 0)
                tell(process, EVENT_LOST if status else EVENT_READ, &way, &source, &question)
            return 0
        process.queued -= 1
        if flag != NULL and status == 0:
            flag[0] += 1
        if inside and status == 0:
            self.over = True
            self.within = NULL                   # the entry may be used again before the call returns
            return 0
        process.signals |= SIGNAL_SENT
        return process.sent(owner, status)

    # -- memory that is wanted back

    cdef bint set_aside(self, Link link, const char *address, uint64_t length) except -1:
        cdef uint32_t slot
        cdef Outgoing *entry
        for slot in range(self.slot_count):
            entry = self.slots[slot]
            if entry.stage == STAGE_FREE or entry.stage == STAGE_CONTROL or entry.link != <void *> link or entry.length == 0:
                continue
            # Of a body that is gathered nobody knows here where it lies.
            if entry.body != NULL and (entry.body >= address + length or address >= entry.body + entry.length):
                continue
            if entry.stage == STAGE_AWAITED or (entry.stage == STAGE_OFFER and link.pushing and link.first == entry):
                if not link.call_back(entry.body, entry.length):
                    return False
                entry.called_back = entry.body
                entry.called_back_length = entry.length
            elif entry.stage == STAGE_OFFER:
                entry.stage = STAGE_OPENING
            self.keep_copy(entry)
        return True

    cdef int keep_copy(self, Outgoing *entry) except -1:
        cdef char *copy = <char *> malloc(entry.length)
        if copy == NULL:
            raise MemoryError(f"no memory for a copy of a message of {entry.length} bytes")
        if entry.body != NULL:
            memcpy(copy + entry.done, entry.body + entry.done, entry.length - entry.done)
        elif not read(<Process> entry.process, &entry.source, entry.done, copy + entry.done, entry.length - entry.done):
            free(copy)
            return 0                             # whoever sends it finds out, too
        entry.copy = copy
        entry.body = copy
        return 0

    # -- the queue of a link

    cdef int add(self, Outgoing *entry, Link link) except -1:
        entry.link = <void *> link
        entry.next = NULL
        if link.first == NULL:
            link.first = entry
            self.busy.append(link)
        else:
            (<Outgoing *> link.last).next = entry
        link.last = entry
        if link.first == entry:
            self.push(link)
        return 0

    cdef bint add_and_see(self, Outgoing *entry, Link link) except -1:
        cdef Outgoing *outer = self.within
        cdef bint outer_over = self.over
        cdef bint over
        self.within = entry
        self.over = False
        try:
            self.add(entry, link)
        finally:
            over = self.over
            self.within = outer
            self.over = outer_over
        return over

    cdef int push(self, Link link) except -1:
        """Send what can be sent, oldest first."""
        cdef Outgoing *entry
        if link.pushing:
            return OK
        link.pushing = True
        try:
            while link.first != NULL:
                if self.advance(<Outgoing *> link.first, link) != OK:
                    return OUT_OF_RESOURCE
                entry = <Outgoing *> link.first
                if entry == NULL:
                    break                        # the link failed meanwhile
                link.first = entry.next
                if link.first == NULL:
                    link.last = NULL
                    self.busy.remove(link)
                if entry.stage == STAGE_OFFER:
                    entry.stage = STAGE_AWAITED
                    self.awaited += 1
                else:
                    self.finish(entry, 0)
        finally:
            link.pushing = False
        return OK

    cdef int advance(self, Outgoing *entry, Link link) except -1:
        if entry.stage == STAGE_WHOLE:
            return self.send_whole(entry, link)
        if entry.stage == STAGE_OFFER:
            return self.send_offer(entry, link)
        if entry.stage == STAGE_OPENING:
            return self.send_opening(entry, link)
        if entry.stage == STAGE_PIECES:
            return self.send_pieces(entry, link)
        return self.transmit(link, <char *> &entry.piece, sizeof(Piece), NULL, 0)

    cdef int transmit(self, Link link, const char *front, size_t front_size, const char *body, size_t body_size) except -1:
        cdef int taken = link.transmit(front, front_size, body, body_size)
        self.packets += taken == OK
        return taken

    cdef int reserve(self, size_t size) except -1:
        cdef void *larger
        if size > self.packet_room:
            larger = PyMem_Realloc(self.packet, size)
            if larger == NULL:
                raise MemoryError(f"no memory for a packet of {size} bytes")
            self.packet = <char *> larger
            self.packet_room = size
        return 0

    cdef int send_whole(self, Outgoing *entry, Link link) except -1:
        cdef size_t size = header_size(&entry.header)
        if entry.body != NULL or entry.length == 0:
            return self.transmit(link, <char *> &entry.header, size, entry.body, entry.length)
        self.reserve(entry.length)
        if not read(<Process> entry.process, &entry.source, 0, self.packet, entry.length):
            memset(self.packet, 0, entry.length)
        return self.transmit(link, <char *> &entry.header, size, self.packet, entry.length)

    cdef int send_offer(self, Outgoing *entry, Link link) except -1:
        cdef Front front
        cdef bytes handle = <bytes> entry.handle if entry.handle != NULL else b""
        begin(&front, PACKET_OFFER, entry)
        front.transfer.address = <uint64_t> entry.body
        front.transfer.handle_length = len(handle)
        return self.transmit(link, <char *> &front, sizeof(Front), <const char *> handle, len(handle))

    cdef int send_opening(self, Outgoing *entry, Link link) except -1:
        cdef Front front
        begin(&front, PACKET_OPENING, entry)
        if self.transmit(link, <char *> &front, sizeof(Front), NULL, 0) != OK:
            return OUT_OF_RESOURCE
        entry.stage = STAGE_PIECES
        entry.done = 0
        return self.send_pieces(entry, link)

    cdef int send_pieces(self, Outgoing *entry, Link link) except -1:
        cdef uint64_t size
        cdef const char *data
        memset(&entry.piece, 0, sizeof(Piece))
        entry.piece.kind = PACKET_FRAGMENT
        entry.piece.source_node = self.node
        entry.piece.number = entry.number
        while entry.done < entry.length:
            size = min(entry.length - entry.done, <uint64_t> (link.packet_size - sizeof(Piece)))
            entry.piece.offset = entry.done
            if entry.body != NULL:
                data = entry.body + entry.done
            else:
                self.reserve(size)
                data = self.packet
                if not read(<Process> entry.process, &entry.source, entry.done, self.packet, size):
                    # The owner has taken the memory away: the rest will not come.
                    entry.piece.status = ERR_OTHER
                    size = 0
            if self.transmit(link, <char *> &entry.piece, sizeof(Piece), data, size) != OK:
                return OUT_OF_RESOURCE
            entry.done += size
            if entry.piece.status:
                entry.length = entry.done
        return OK

    # -- answers from the other side

    cdef int fetched(self, uint32_t node, uint64_t number, int status) except -1:
        """The receiver needs no more of the body: all of it is there, or it has dropped the message."""
        cdef Outgoing *entry = self.find(number)
        if entry == NULL or (<Link> entry.link).node != node:
            return 0
        if entry.stage == STAGE_PIECES:
            entry.length = entry.done            # ends when its turn comes
        elif entry.stage == STAGE_AWAITED:
            self.awaited -= 1
            self.finish(entry, status)
        return 0

    cdef int stream(self, uint32_t node, uint64_t number) except -1:
        """The receiver could not fetch: the body goes in pieces."""
        cdef Outgoing *entry = self.find(number)
        if entry == NULL or (<Link> entry.link).node != node or entry.stage != STAGE_AWAITED:
            return 0
        self.awaited -= 1
        entry.stage = STAGE_PIECES
        entry.done = 0
        self.add(entry, <Link> entry.link)
        return 0

    # -- retries and failures

    cdef int progress(self) except -1:
        """Try again what found no resources; returns the number of packets sent."""
        cdef Link link
        cdef uint64_t before = self.packets
        if not self.busy:
            return 0
        for link in list(self.busy):
            self.push(link)
            link.report()
        return <int> (self.packets - before)

    cdef int fail(self, Link link, int status) except -1:
        """Nothing goes this way any more: whatever waits for it ends with an error class."""
        cdef Outgoing *entry = <Outgoing *> link.first
        cdef Outgoing *next
        cdef uint32_t slot
        link.first = link.last = NULL
        if link in self.busy:
            self.busy.remove(link)
        while entry != NULL:
            next = entry.next
            self.finish(entry, status)
            entry = next
        for slot in range(self.slot_count):
            entry = self.slots[slot]
            if entry.stage == STAGE_AWAITED and entry.link == <void *> link:
                self.awaited -= 1
                self.finish(entry, status)
        return 0
