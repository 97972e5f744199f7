# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The Q-Kernel.  Pictured in `kernel.pxd`."""
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memset

from ompy.core.constants cimport OK
from ompy.core.errors import ERR_ARG, ERR_PROC_FAILED, MPIError
from ompy.core.progress cimport register_source, unregister_source
from ompy_puma.capability cimport GroupCapability, PortalCapability
from ompy_puma.descriptor cimport READ
from ompy_puma.events cimport tell, tell_drop
from ompy_puma.header cimport (
    ACKNOWLEDGEMENT, PACKET_FETCHED, PACKET_FRAGMENT, PACKET_MESSAGE, PACKET_OFFER, PACKET_STREAM, PLAIN,
    PLAIN_SIZE, REPLY, RETURN, USER_DATA, Piece, Transfer, header_size, second_half_is_zero,
)
from ompy_puma.incoming cimport FETCH_DONE, FETCH_FAILED, FETCH_STALLED, FetchVerdict
from ompy_puma.match_list cimport LINK_END, LINK_NEXT, PORTAL_DESCRIPTOR, PORTAL_LIST, MatchEntry, PortalEntry, matches
from ompy_puma.outgoing cimport STAGE_CONTROL, STAGE_OFFER, STAGE_OPENING, STAGE_WHOLE
from ompy_puma.placement cimport place, settle, write
from ompy_puma.process cimport (
    DROP_BROKEN_LIST, DROP_EMPTY_PORTAL, DROP_GROUP, DROP_LOST, DROP_MALFORMED, DROP_NO_MATCH, DROP_NO_PROCESS, DROP_NO_REPLY,
    DROP_NONE, DROP_PORTAL, DROP_RESOURCES, DROP_STRAY, DROP_TOO_LONG, EVENT_DEPOSITED, EVENT_LOST, EVENT_MATCHED, EVENT_READ,
)

cdef enum:
    MOST_CONTEXTS = 65536                        # what a header's field can name


cdef bint never_ready(void *context) noexcept nogil:
    # What is queued waits for a transport to have room: the transport's own `ready` says so.
    return False


cdef class QKernel(ProgressSource):
    """The kernel of one node.

    Parameters:
        node: this node's number.
        wire: what it is attached to.
        engine: let the progress engine poll it while something is queued; False for a person who calls `progress`.
    """

    def __init__(self, uint32_t node, Wire wire not None, *, bint engine=True):
        self.node = node
        self.wire = wire
        self.engine = engine
        self.contexts = [None]
        self.links = {}
        self.outgoing = OutgoingQueue(node)
        self.incoming = IncomingTable()
        self.stalled = []
        self.ready = never_ready
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

    # -- sending

    cdef Link link_to(self, uint32_t node):
        cdef Link link = self.links.get(node)
        if link is None:
            link = self.wire.link(node)
            self.links[node] = link
        return link

    cdef int send_app_msg(self, Process process, int group, uint32_t rank, Header *header, const char *body,
                          uint64_t length, uint64_t owner, int *flag) except -1:
        cdef GroupCapability capability
        cdef Link link
        if group < 0 or group >= len(process.capabilities) or not isinstance(process.capabilities[group], GroupCapability):
            process.refused += 1
            return REFUSED
        capability = <GroupCapability> process.capabilities[group]
        if rank >= capability.size:
            process.refused += 1
            return REFUSED
        link = <Link> capability.links[rank]
        if link is None:
            link = self.link_to(capability.members[rank].node)
            capability.links[rank] = link
        return self.send(process, link, &capability.members[rank], capability.group, header, body, length, owner, flag)

    cdef int send_server_msg(self, Process process, int capability, Header *header, const char *body, uint64_t length,
                             uint64_t owner, int *flag) except -1:
        cdef PortalCapability granted
        if capability < 0 or capability >= len(process.capabilities) or not isinstance(process.capabilities[capability],
                                                                                       PortalCapability):
            process.refused += 1
            return REFUSED
        granted = <PortalCapability> process.capabilities[capability]
        if granted.link is None:
            granted.link = self.link_to(granted.member.node)
        header.portal = granted.portal
        return self.send(process, granted.link, &granted.member, granted.group, header, body, length, owner, flag)

    cdef int send(self, Process process, Link link, Member *member, uint32_t group, Header *header, const char *body,
                  uint64_t length, uint64_t owner, int *flag) except -1:
        cdef Outgoing *entry
        cdef size_t size
        if link.failure is not None:
            raise link.failure
        if not process.allows(body, length):
            process.refused += 1
            return REFUSED
        header.kind = PACKET_MESSAGE
        header.flags &= RETURN
        header.source_rank = process.rank
        header.source_group = process.group
        header.target_group = group
        header.target_process = member.process
        header.source_process = process.index
        header.source_node = self.node
        header.length = length
        header.reserved = 0
        if second_half_is_zero(header):
            header.flags |= PLAIN
        size = header_size(header)
        if link.first == NULL and size + length <= link.eager_size:
            if link.transmit(<char *> header, size, body, length) == OK:
                if flag != NULL:
                    flag[0] += 1
                return SENT
        if process.queued >= process.queue_limit:
            return OUT_OF_RESOURCE
        entry = self.outgoing.new(process, False)
        entry.header = header[0]
        entry.body = body
        entry.length = length
        entry.owner = owner
        entry.flag = flag
        prepare(entry, link)
        if self.outgoing.add_and_see(entry, link):
            return SENT
        self.poll()
        return QUEUED

    cdef bint waits(self) noexcept:
        return len(self.outgoing.busy) > 0 or len(self.stalled) > 0

    cdef int poll(self) except -1:
        """Have the progress engine call while something is queued."""
        if self.engine and not self.polled and self.waits():
            self.polled = True
            register_source(self)
        return 0

    cpdef int progress(self) except -1:
        """Send what is queued and can be sent; returns the number of events."""
        cdef int events = self.outgoing.progress()
        if self.stalled:
            events += self.retry_fetches()
        if self.polled and not self.waits():
            self.polled = False
            unregister_source(self)
        return events

    cpdef bint settled(self) except -1:
        return not self.outgoing.busy and self.outgoing.awaited == 0

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

    cdef int whole(self, Process process, const Header *header, const Way *way, Placement *placement) except -1:
        """All of a message that is saved is there."""
        cdef Header told
        cdef bint wanted = placement.acknowledge and header.flags & (RETURN | ACKNOWLEDGEMENT | REPLY) == RETURN
        self.delivered += 1
        settle(placement, True)
        if wanted:
            memset(&told, 0, sizeof(Header))
            told.flags = ACKNOWLEDGEMENT
            memcpy(told.user_data, header.user_data, USER_DATA)
            told.user_data[0] = placement.saved
            told.return_length = placement.length
            self.acknowledgements += 1
            self.answer(process, &told, header, NULL, 0, way, NULL)
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
        cdef uint32_t slot
        cdef Incoming *record
        cdef Outgoing *entry
        cdef int under_way = 0
        for slot in range(self.incoming.slot_count):
            record = self.incoming.slots[slot]
            if record.process == <void *> process and (record.placement.descriptor == descriptor
                                                       or record.placement.base == descriptor):
                record.discarded = True
                under_way += record.fetches
        for slot in range(self.outgoing.slot_count):
            entry = self.outgoing.slots[slot]
            if entry.process == <void *> process and entry.reply and (entry.source.descriptor == descriptor
                                                                      or entry.source.base == descriptor):
                under_way += 1
        return under_way

    # -- answers

    cdef int reply(self, Process process, const Header *header, const Way *way, Placement *placement) except -1:
        cdef Header told
        memset(&told, 0, sizeof(Header))
        told.flags = REPLY
        told.length = placement.length
        memcpy(told.user_data, header.user_data, USER_DATA)
        self.replies += 1
        return self.answer(process, &told, header, placement.body, placement.length, way, placement)

    cdef int answer(self, Process process, Header *header, const Header *question, const char *body, uint64_t length,
                    const Way *way, const Placement *source) except -1:
        """Send a reply (`source` says from where) or an acknowledgement (NULL) to whoever sent `question`."""
        cdef Link link = self.reachable(question.source_node)
        cdef Outgoing *entry
        cdef Placement from_where
        if link is None:
            if source != NULL:
                from_where = source[0]
                settle(&from_where, False)
            return tell_drop(process, DROP_NO_REPLY, way, question)
        header.kind = PACKET_MESSAGE
        header.portal = question.return_portal
        header.source_rank = process.rank
        header.source_group = process.group
        header.target_group = question.source_group
        header.target_process = question.source_process
        header.source_process = process.index
        header.source_node = self.node
        header.match_bits = question.return_match_bits
        header.offset = question.return_offset
        if second_half_is_zero(header):
            header.flags |= PLAIN
        if link.first == NULL and header_size(header) + length <= link.eager_size and (body != NULL or length == 0):
            if link.transmit(<char *> header, header_size(header), body, length) == OK:
                if source == NULL:
                    return 0
                from_where = source[0]
                settle(&from_where, True)
                return tell(process, EVENT_READ, way, &from_where, question)
        entry = self.outgoing.new(process, True)
        entry.header = header[0]
        entry.body = body
        entry.length = length
        entry.portal = way.portal
        entry.entry = way.entry
        if source != NULL:
            entry.reply = True
            entry.source = source[0]
            entry.question = question[0]
        prepare(entry, link)
        self.outgoing.add(entry, link)
        return self.poll()

    cdef Link reachable(self, uint32_t node):
        """The link to a node, None when there is none or it has failed."""
        cdef Link link
        try:
            link = self.link_to(node)
        except MPIError:
            return None
        return link if link.failure is None else None

    cdef int control(self, uint32_t node, int kind, uint64_t number, int status) except -1:
        """A word from kernel to kernel about a body."""
        cdef Link link = self.reachable(node)
        cdef Outgoing *entry
        cdef Piece piece
        if link is None:
            return 0
        memset(&piece, 0, sizeof(Piece))
        piece.kind = kind
        piece.status = status
        piece.source_node = self.node
        piece.number = number
        if link.first == NULL and link.transmit(<char *> &piece, sizeof(Piece), NULL, 0) == OK:
            return 0
        entry = self.outgoing.new(None, True)
        entry.piece = piece
        entry.stage = STAGE_CONTROL
        self.outgoing.add(entry, link)
        return self.poll()

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


cdef void prepare(Outgoing *entry, Link link) except *:
    """How the message goes: in one packet, by being fetched, or in pieces."""
    cdef bytes handle
    cdef size_t size = header_size(&entry.header)
    if size + entry.length <= link.eager_size:
        entry.stage = STAGE_WHOLE
    elif link.can_fetch and entry.body != NULL:
        entry.stage = STAGE_OFFER
        handle = link.offer(entry.body, entry.length)
        if handle is not None:
            Py_INCREF(handle)
            entry.handle = <void *> handle
    elif size + entry.length <= link.packet_size:
        entry.stage = STAGE_WHOLE
    else:
        entry.stage = STAGE_OPENING
