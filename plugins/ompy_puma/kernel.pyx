# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The Q-Kernel.  Pictured in `kernel.pxd`."""
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

from ompy.core.atomic cimport atomic32, atomic64
from ompy.core.errors import ERR_ARG, ERR_PROC_FAILED, MPIError
from ompy_puma.descriptor cimport CHANGE, READ
from ompy_puma.events cimport tell, tell_drop
from ompy_puma.header cimport (
    ACKNOWLEDGEMENT, PACKET_FETCHED, PACKET_FRAGMENT, PACKET_MESSAGE, PACKET_OFFER, PACKET_STREAM, PLAIN_SIZE, REPLY, RETURN,
    Change, Piece, Transfer, header_size,
)
from ompy_puma.incoming cimport BUCKETS, FETCH_DONE, FETCH_FAILED, FETCH_STALLED, FetchVerdict
from ompy_puma.link cimport Link, Wire
from ompy_puma.match_list cimport LINK_END, LINK_NEXT, PORTAL_DESCRIPTOR, PORTAL_LIST, MatchEntry, PortalEntry, matches
from ompy_puma.outgoing cimport Outgoing
from ompy_puma.placement cimport place, settle, write
from ompy_puma.process cimport (
    DROP_BROKEN_LIST, DROP_EMPTY_PORTAL, DROP_GROUP, DROP_INVALID, DROP_LOST, DROP_MALFORMED, DROP_NO_MATCH, DROP_NO_PROCESS,
    DROP_NONE,
    DROP_PORTAL, DROP_RESOURCES, DROP_STRAY, DROP_TOO_LONG, EVENT_DEPOSITED, EVENT_LOST, EVENT_MATCHED,
)

cdef enum:
    MOST_CONTEXTS = 65536                        # what a header's field can name
    CHANGES = 8                                  # operations of `ompy.core.atomic`


cdef bint writes(const Incoming *record, Process process, uint32_t node, const char *address, uint64_t length) noexcept:
    """Whether a message that the node began is on its way into this memory."""
    cdef const char *body = record.placement.body
    return (
        record.process == <void *> process and record.node == node and not record.header.flags & REPLY
        and body != NULL and body < address + length and address < body + record.placement.length
    )


cdef class QKernel(Transmission):
    """The kernel of one node.

    Parameters:
        node: this node's number.
        wire: what it is attached to.
        engine: let the progress engine poll it while something is queued; False for a person who calls `progress`.
    """

    def __init__(self, uint32_t node, Wire wire not None, *, bint engine=True):
        super().__init__(node, wire, engine)
        self.contexts = [None]
        self.incoming = IncomingTable()
        self.stalled = []
        wire.kernel = self

    # -- for the PCT

    def create_context(self, Process process not None, int index=-1):
        """Give a process its place in the context table; returns its index.

        Parameters:
            index: the place; -1 for the first that is free.  0 is the PCT's own.
        """
        if process.kernel is not None:
            raise MPIError(ERR_ARG, f"process: it has a context already, {process.index} of node {process.kernel.node}")
        if index < 0:
            index = 1
            while index < len(self.contexts) and self.contexts[index] is not None:
                index += 1
        if index >= MOST_CONTEXTS:
            raise MPIError(ERR_ARG, f"index: a node has {MOST_CONTEXTS} contexts, 0 to {MOST_CONTEXTS - 1}, not {index}")
        self.contexts.extend([None] * (index + 1 - len(self.contexts)))
        if self.contexts[index] is not None:
            raise MPIError(ERR_ARG, f"index: context {index} of node {self.node} is in use")
        self.contexts[index] = process
        process.kernel = self
        process.index = index
        return index

    def delete_context(self, Process process not None):
        """The process is gone: what still comes for it is dropped."""
        cdef int descriptor
        for descriptor in range(process.descriptors_begun):
            self.abandon(process, descriptor)
        self.contexts[process.index] = None
        process.kernel = None

    # -- progress

    cdef bint waits(self) noexcept:
        return len(self.outgoing.busy) > 0 or len(self.stalled) > 0

    cpdef int progress(self) except -1:
        """Send what is queued and can be sent, fetch what could not be fetched; returns the number of events."""
        cdef int events = self.retry_fetches() if self.stalled else 0
        return events + Transmission.progress(self)

    # -- arrival

    cdef int arrive(self, const char *packet, size_t length) except -1:
        cdef Header header
        cdef Transfer transfer
        cdef size_t size
        cdef uint8_t kind = <uint8_t> packet[0] if length else 0
        self.packets += 1
        if kind == PACKET_FRAGMENT or kind == PACKET_FETCHED or kind == PACKET_STREAM:
            return self.piece(packet, length)
        if length < PLAIN_SIZE or kind < PACKET_MESSAGE or kind > PACKET_OFFER:
            return self.drop(DROP_MALFORMED, None, NULL, NULL, 0)
        memcpy(&header, packet, PLAIN_SIZE)
        size = header_size(&header)
        if length < size:
            return self.drop(DROP_MALFORMED, None, NULL, NULL, 0)
        if size == PLAIN_SIZE:
            memset(<char *> &header + PLAIN_SIZE, 0, sizeof(Header) - PLAIN_SIZE)
        else:
            memcpy(<char *> &header + PLAIN_SIZE, packet + PLAIN_SIZE, sizeof(Header) - PLAIN_SIZE)
        if kind == PACKET_MESSAGE:
            if header.length != length - size:
                return self.drop(DROP_MALFORMED, None, NULL, &header, 0)
            return self.deliver(&header, 0, 0, packet + size, length - size)
        if length < size + sizeof(Transfer):
            return self.drop(DROP_MALFORMED, None, NULL, &header, 0)
        memcpy(&transfer, packet + size, sizeof(Transfer))
        size += sizeof(Transfer)
        if transfer.number == 0 or length - size != transfer.handle_length or (kind == PACKET_OFFER) != (transfer.address != 0):
            return self.drop(DROP_MALFORMED, None, NULL, &header, 0)
        return self.deliver(&header, transfer.number, transfer.address, packet + size, length - size)

    cdef int deliver(self, const Header *header, uint64_t number, uint64_t remote, const char *rest, size_t size) except -1:
        """Find out where a message goes.

        Parameters:
            number: the sender's name for what is not whole, 0 for a whole message.
            remote: the sender's address of the body, where it is to be fetched.
            rest: behind the header; the body, or the handle for a fetch.
        """
        cdef Process process
        cdef PortalEntry *portal
        cdef MatchEntry *entry
        cdef Placement placement
        cdef Way way
        cdef int next, steps
        cdef DropReason reason
        if header.target_process >= len(self.contexts) or self.contexts[header.target_process] is None:
            return self.drop(DROP_NO_PROCESS, None, NULL, header, number)
        process = <Process> self.contexts[header.target_process]
        way.portal = header.portal
        way.entry = way.refused = way.descriptor = -1
        if (header.flags & RETURN and process.answers >= process.queue_limit) or (
            number and process.arriving >= process.queue_limit
        ):
            return self.drop(DROP_RESOURCES, process, &way, header, number)
        if header.target_group != process.group:
            return self.drop(DROP_GROUP, process, &way, header, number)
        if header.portal >= process.portal_count:
            return self.drop(DROP_PORTAL, process, &way, header, number)
        portal = &process.portals[header.portal]
        if portal.kind == PORTAL_DESCRIPTOR:
            way.descriptor = portal.index
            reason = place(process, portal.index, header, &placement)
            if reason != DROP_NONE:
                return self.drop(reason, process, &way, header, number)
            return self.take(process, header, &way, &placement, number, remote, rest, size)
        if portal.kind != PORTAL_LIST:
            return self.drop(DROP_EMPTY_PORTAL, process, &way, header, number)
        reason = DROP_NO_MATCH
        next = portal.index
        steps = process.entry_count
        while next >= 0 and next < process.entry_count and steps > 0:
            steps -= 1
            entry = &process.entries[next]
            if not matches(entry, header):
                next = entry.no_match
                continue
            way.entry = next
            way.descriptor = entry.descriptor
            reason = place(process, entry.descriptor, header, &placement)
            if reason == DROP_NONE:
                return self.take(process, header, &way, &placement, number, remote, rest, size)
            if reason == DROP_TOO_LONG:
                way.refused = next
                next = entry.too_long
            else:
                next = entry.invalid
            if next == LINK_NEXT:
                next = entry.no_match
        if next != LINK_END:
            reason = DROP_BROKEN_LIST
        return self.drop(reason, process, &way, header, number)

    cdef int take(self, Process process, const Header *header, const Way *way, Placement *placement, uint64_t number,
                  uint64_t remote, const char *rest, size_t size) except -1:
        """A descriptor has claimed room for the message."""
        cdef Incoming *record
        if placement.operation == READ:
            self.reply(process, header, way, placement)
            if number:
                self.control(header.source_node, PACKET_FETCHED, number, 0)
            return 0
        if placement.operation == CHANGE:
            return self.change(process, header, way, placement, number, rest, size)
        if number == 0:
            write(process, placement, 0, rest, size)
            self.bytes_copied += placement.length
            return self.whole(process, header, way, placement)
        if placement.length == 0:
            self.control(header.source_node, PACKET_FETCHED, number, 0)
            return self.whole(process, header, way, placement)
        record = self.incoming.open(process, number, header, way, placement)
        if remote:
            record.remote = remote
            if size:
                handle = rest[:size]
                Py_INCREF(handle)
                record.handle = <void *> handle
        tell(process, EVENT_MATCHED, way, placement, &record.header)
        # Whoever was told may have abandoned the memory, not the record.
        return self.go_on(record) if remote else 0

    cdef int change(self, Process process, const Header *header, const Way *way, Placement *placement, uint64_t number,
                    const char *rest, size_t size) except -1:
        """Alter a word, and tell what it was."""
        cdef Change change
        cdef int64_t old
        if number or size != sizeof(Change):
            return self.drop(DROP_MALFORMED, process, way, header, number)
        memcpy(&change, rest, sizeof(Change))
        if placement.length != 4 and placement.length != 8 or <size_t> placement.body % placement.length \
                or change.operation < 0 or change.operation >= CHANGES:
            return self.drop(DROP_INVALID, process, way, header, 0)
        if placement.length == 4:
            old = atomic32(<int32_t *> placement.body, change.operation, change.operand, change.compare)
        else:
            old = atomic64(<int64_t *> placement.body, change.operation, change.operand, change.compare)
        self.delivered += 1
        self.acknowledge(process, header, way, placement, old)
        return tell(process, EVENT_DEPOSITED, way, placement, header)

    cdef int whole(self, Process process, const Header *header, const Way *way, Placement *placement) except -1:
        """All of a message that is saved is there."""
        self.delivered += 1
        settle(placement, True)
        if placement.acknowledge and header.flags & (RETURN | ACKNOWLEDGEMENT | REPLY) == RETURN:
            self.acknowledge(process, header, way, placement, 0)
        return tell(process, EVENT_DEPOSITED, way, placement, header)

    # -- bodies that come by themselves

    cdef int piece(self, const char *packet, size_t length) except -1:
        cdef Piece piece
        cdef Incoming *record
        cdef uint64_t size
        if length < sizeof(Piece):
            return self.drop(DROP_MALFORMED, None, NULL, NULL, 0)
        memcpy(&piece, packet, sizeof(Piece))
        if piece.kind == PACKET_FETCHED:
            return self.outgoing.fetched(piece.source_node, piece.number, piece.status)
        if piece.kind == PACKET_STREAM:
            self.outgoing.stream(piece.source_node, piece.number)
            return self.poll()
        record = self.incoming.find(piece.source_node, piece.number)
        if record == NULL or record.remote:
            return self.drop(DROP_STRAY, None, NULL, NULL, 0)
        size = length - sizeof(Piece)
        if piece.offset > record.header.length or size > record.header.length - piece.offset:
            return self.drop(DROP_MALFORMED, None, NULL, NULL, 0)
        if piece.status:
            return self.end(record, False)
        if not record.discarded:
            self.bytes_copied += size
            record.discarded = not write(<Process> record.process, &record.placement, piece.offset, packet + sizeof(Piece),
                                         size)
        record.position += size
        return self.end(record, True) if record.position >= record.header.length else 0

    cdef int go_on(self, Incoming *record) except -1:
        """Fetch what can be fetched now."""
        cdef FetchVerdict verdict
        cdef uint32_t node = record.node
        cdef uint64_t number = record.number
        record.asking = True
        try:
            verdict = self.incoming.fetch(record, self.link_to(node))
        except MPIError:
            return self.end(record, False)       # nothing leads to where it is
        finally:
            record.asking = False
        if verdict == FETCH_STALLED:
            self.stalled.append(record.slot)
            return self.poll()
        if verdict == FETCH_FAILED:
            record.remote = 0
            record.position = 0
            record.failed = False
            return self.control(node, PACKET_STREAM, number, 0)
        if verdict == FETCH_DONE:
            self.control(node, PACKET_FETCHED, number, 0)
            self.bytes_fetched += record.placement.length
            return self.end(record, True)
        return 0

    cdef int retry_fetches(self) except -1:
        cdef Incoming *record
        cdef list slots = self.stalled
        cdef int events = 0
        self.stalled = []
        for slot in slots:
            record = self.incoming.at(slot)
            if record != NULL and record.stalled:
                self.go_on(record)
                events += 1
        return events - len(self.stalled)

    cdef int fetched(self, uint64_t slot, int status) except -1:
        cdef Incoming *record = self.incoming.at(slot)
        if record == NULL:
            return 0
        record.fetches -= 1
        if status:
            record.failed = True
        if record.fetches == 0 and not record.asking and not record.stalled:
            return self.go_on(record)
        return 0

    cdef int end(self, Incoming *record, bint whole) except -1:
        """No more of the body will come."""
        cdef Process process = <Process> record.process
        cdef Placement placement = record.placement
        cdef Header header = record.header
        cdef Way way = record.way
        whole = whole and not record.discarded
        if record.discarded:
            placement.body = NULL
            placement.buffer = NULL
            placement.letter = NULL
        self.incoming.close(record)
        if whole:
            return self.whole(process, &header, &way, &placement)
        settle(&placement, False)
        process.drops[<int> DROP_LOST] += 1
        return tell(process, EVENT_LOST, &way, &placement, &header)

    cdef int abandon(self, Process process, int descriptor) except -1:
        cdef int bucket
        cdef Incoming *record
        cdef Outgoing *entry = self.outgoing.replies
        cdef int under_way = 0
        for bucket in range(BUCKETS if process.arriving else 0):
            record = self.incoming.buckets[bucket]
            while record != NULL:
                if record.process == <void *> process and (record.placement.descriptor == descriptor
                                                           or record.placement.base == descriptor):
                    record.discarded = True
                    under_way += record.fetches
                record = record.next
        while entry != NULL:
            if entry.process == <void *> process and (entry.source.descriptor == descriptor
                                                      or entry.source.base == descriptor):
                under_way += 1
            entry = entry.next_reply
        return under_way

    cdef bint withhold(self, Process process, uint32_t node, const char *address, uint64_t length) except -1:
        cdef uint32_t slot
        for slot in range(self.incoming.slot_count):
            if writes(self.incoming.slots[slot], process, node, address, length) and self.incoming.slots[slot].fetches:
                return False
        if not self.set_aside(node, address, length):
            return False
        process.withhold(node, <size_t> address, length)
        for slot in range(self.incoming.slot_count):
            if writes(self.incoming.slots[slot], process, node, address, length):
                self.incoming.slots[slot].discarded = True
        return True

    # -- drops

    cdef int drop(self, DropReason reason, Process process, const Way *way, const Header *header, uint64_t number) except -1:
        """Throw a message away, and tell whom it was for, or the PCT when that is nobody.

        The sender is told no more than it needs in order to stop sending the body.
        """
        cdef Way nowhere
        cdef Header nothing
        if number:
            self.control(header.source_node, PACKET_FETCHED, number, 0)
        if process is None:
            self.drops[<int> reason] += 1
            process = self.contexts[0]
            if process is None:
                return 0
            nowhere.portal = nowhere.entry = nowhere.refused = nowhere.descriptor = -1
            way = &nowhere
        if header == NULL:
            memset(&nothing, 0, sizeof(Header))
            header = &nothing
        return tell_drop(process, reason, way, header)

    # -- trouble

    cpdef int peer_lost(self, uint32_t node, object error) except -1:
        """Contact with a node is lost: whatever is under way with it fails.

        Parameters:
            error: the exception that further sends to the node raise.
        """
        cdef Link link = self.links.get(node)
        cdef uint32_t slot
        if link is not None and link.failure is None:
            link.failure = error
            self.outgoing.fail(link, ERR_PROC_FAILED)
        for slot in range(self.incoming.slot_count):
            if self.incoming.slots[slot].process != NULL and self.incoming.slots[slot].node == node:
                self.end(self.incoming.slots[slot], False)
        return self.poll()

    # -- seen from Python

    def receive_packet(self, const unsigned char[::1] packet):
        """Hand the kernel a packet, as a wire does."""
        self.arrive(<const char *> &packet[0] if packet.shape[0] else NULL, packet.shape[0])

    @property
    def statistics(self):
        """Counters by name; `drops` are packets that reached no process, by reason."""
        return {
            "packets": self.packets,
            "delivered": self.delivered,
            "replies": self.replies,
            "acknowledgements": self.acknowledgements,
            "bytes_copied": self.bytes_copied,
            "bytes_fetched": self.bytes_fetched,
            "incoming": self.incoming.count,
            "drops": {reason: self.drops[reason] for reason in range(<int> DROP_REASONS) if self.drops[reason]},
        }
