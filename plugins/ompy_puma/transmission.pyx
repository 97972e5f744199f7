# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The sending half of a node.  See `transmission.pxd`."""
from cpython.ref cimport Py_INCREF
from libc.string cimport memcpy, memset

from ompy.core.constants cimport OK
from ompy.core.errors import MPIError
from ompy.core.progress_source cimport register_source, unregister_source
from ompy_puma.capability cimport GroupCapability, PortalCapability
from ompy_puma.descriptor cimport CHANGE
from ompy_puma.events cimport tell, tell_drop
from ompy_puma.header cimport (
    ACKNOWLEDGEMENT, OLD_VALUE, PACKET_MESSAGE, PLAIN, REPLY, RETURN, USER_DATA, Piece, header_size, second_half_is_zero,
)
from ompy_puma.outgoing cimport STAGE_CONTROL, STAGE_OFFER, STAGE_OPENING, STAGE_WHOLE, Outgoing
from ompy_puma.placement cimport settle
from ompy_puma.process cimport DROP_NO_REPLY, EVENT_READ


cdef bint never_ready(void *context) noexcept nogil:
    # What is queued waits for a transport to have room: the transport's own `ready` says so.
    return False


cdef class Transmission(ProgressSource):
    """Sends for the processes of a node, and for its kernel.

    Parameters:
        node: this node's number.
        wire: what it is attached to.
        engine: let the progress engine poll it while something is queued.
    """

    def __init__(self, uint32_t node, Wire wire not None, bint engine):
        self.node = node
        self.wire = wire
        self.engine = engine
        self.links = {}
        self.outgoing = OutgoingQueue(node)
        self.ready = never_ready

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

    cdef bint set_aside(self, uint32_t node, const char *address, uint64_t length) except -1:
        cdef Link link = self.links.get(node)
        return link is None or self.outgoing.set_aside(link, address, length)

    cdef bint waits(self) noexcept:
        """Whether something is queued."""
        return len(self.outgoing.busy) > 0

    cdef int poll(self) except -1:
        """Have the progress engine call while something is queued."""
        if self.engine and not self.polled and self.waits():
            self.polled = True
            register_source(self)
        return 0

    cpdef int progress(self) except -1:
        """Send what is queued and can be sent; returns the number of packets."""
        cdef int events = self.outgoing.progress()
        if self.polled and not self.waits():
            self.polled = False
            unregister_source(self)
        return events

    cpdef bint settled(self) except -1:
        return not self.outgoing.busy and self.outgoing.awaited == 0

    # -- answers

    cdef int reply(self, Process process, const Header *header, const Way *way, Placement *placement) except -1:
        cdef Header told
        memset(&told, 0, sizeof(Header))
        told.flags = REPLY
        told.length = placement.length
        memcpy(told.user_data, header.user_data, USER_DATA)
        self.replies += 1
        return self.answer(process, &told, header, placement.body, placement.length, way, placement)

    cdef int acknowledge(self, Process process, const Header *header, const Way *way, const Placement *placement,
                         int64_t old) except -1:
        cdef Header told
        memset(&told, 0, sizeof(Header))
        told.flags = ACKNOWLEDGEMENT
        memcpy(told.user_data, header.user_data, USER_DATA)
        told.user_data[0] = placement.saved
        if placement.operation == CHANGE:
            memcpy(told.user_data + OLD_VALUE, &old, sizeof(old))
        told.return_length = placement.length
        self.acknowledgements += 1
        return self.answer(process, &told, header, NULL, 0, way, NULL)

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
            self.outgoing.replies_to(entry, source, question)
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


cdef void prepare(Outgoing *entry, Link link) except *:
    """How the message goes: in one packet, by being fetched, or in pieces."""
    cdef bytes handle
    cdef size_t size = header_size(&entry.header)
    entry.stage = STAGE_WHOLE if size + entry.length <= link.packet_size else STAGE_OPENING
    if not link.can_fetch or entry.body == NULL or size + entry.length <= link.eager_size:
        return
    try:
        handle = link.offer(entry.body, entry.length)
    except MPIError:
        return                                   # no more memory can be offered: it is sent
    entry.stage = STAGE_OFFER
    if handle is not None:
        Py_INCREF(handle)
        entry.handle = <void *> handle
