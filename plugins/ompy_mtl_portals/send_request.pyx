# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The sender's half of mtl/portals' protocols; pictured in `send_request.pxd`."""
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.string cimport memcpy, memset

from ompy.core.board cimport SEND
from ompy.core.constants cimport MODE_READY, MODE_SYNCHRONOUS, OK
from ompy.core.constants cimport OUT_OF_RESOURCE as NO_ROOM
from ompy.core.errors import ERR_OTHER, MPIError
from ompy.core.proc cimport table

from ompy_mtl_portals.context cimport ASKED, UNKNOWN
from ompy_mtl_portals.flow cimport QUEUED_LIMIT, Lane, lane_of
from ompy_mtl_portals.wire cimport (
    PORTAL_ACKNOWLEDGE, PORTAL_READ, PORTAL_RECEIVE, PROTOCOL_SYNCHRONOUS, TYPE_LONG, TYPE_READY, WORD_DISCARDED,
    WORD_THROWN_AWAY, match_bits,
)
from ompy_puma.descriptor cimport (
    CIRCULAR, READ, SAVE_BODY, SAVE_HEADER, SENDER_OFFSET, WRITE, make_independent, make_single,
)
from ompy_puma.header cimport ACKNOWLEDGEMENT, RETURN
from ompy_puma.heap cimport letter_size
from ompy_puma.transmission cimport OUT_OF_RESOURCE, QUEUED, REFUSED
from ompy_puma.match_list cimport ANY_GROUP, ANY_RANK, LINK_END, LINK_NEXT, MatchEntry


cdef class PortalsSend(MtlSend):
    def __cinit__(self):
        self.acknowledge_entry = self.read_entry = -1

    cdef int submit(self) except -1:
        """Take a place in the order of messages to the peer."""
        cdef PortalContext context = <PortalContext> self.communicator.pml
        self.context = context
        self.node = self.engine.node_of(context.communicator, self.peer)
        self.awaited = 0
        self.was_read = False
        if self.engine.peer(self.node).failed:
            raise table.at(self.node).failure
        if context.theirs[self.peer] == UNKNOWN or context.theirs[self.peer] == ASKED:
            return self.engine.ask(context, self.peer, self)
        if self.engine.peers[self.node].lanes[lane_of(self.tag)].stalled or self.launch() != OK:
            return self.engine.stall(self.node, self.tag, self)
        return 0

    cdef int launch(self) except -1:
        """Send, if there is credit and the kernel has room."""
        cdef Header header
        cdef Lane *lane = &self.engine.peers[self.node].lanes[lane_of(self.tag)]
        cdef bint is_long = self.length > self.engine.short_limit
        cdef bint synchronous = self.mode == MODE_SYNCHRONOUS
        cdef uint64_t cost = letter_size(0) if is_long else letter_size(self.length)
        cdef int kind = (TYPE_LONG if is_long else 0) | (TYPE_READY if self.mode == MODE_READY else 0)
        cdef int verdict
        if lane.spent + cost > lane.granted or self.engine.queued >= QUEUED_LIMIT or self.engine.peers[self.node].failed:
            return NO_ROOM
        memset(&header, 0, sizeof(header))
        header.portal = PORTAL_RECEIVE
        header.match_bits = match_bits(self.tag, self.context.communicator.rank, self.context.theirs[self.peer], kind)
        self.awaited = AWAIT_SENT
        if is_long or synchronous:
            try:
                self.expect(is_long)
            except MPIError as error:            # it is this request's, and of nobody who has it launched later
                self.awaited = 0
                self.fail(error)
                return OK
        if synchronous:
            header.user_data[0] = PROTOCOL_SYNCHRONOUS
            self.awaited |= AWAIT_WORD
        if is_long:
            header.flags = RETURN
            header.return_portal = PORTAL_ACKNOWLEDGE
            header.return_match_bits = self.bits
            self.awaited |= AWAIT_ACKNOWLEDGEMENT
        elif synchronous:
            memcpy(&header.user_data[1], &self.bits, sizeof(self.bits))
        # Set before: answers may come before the call returns.
        lane.spent += cost
        Py_INCREF(self)                          # the kernel's reference, until `out`
        verdict = self.engine.qkernel.send_app_msg(self.engine, self.engine.capability, self.node, &header, self.data,
                                                   self.length, <uint64_t> <void *> self, NULL)
        if verdict == QUEUED:
            return OK
        Py_DECREF(self)
        if verdict == OUT_OF_RESOURCE:
            lane.spent -= cost
            self.awaited = 0
            self.unlink()
            return NO_ROOM
        if verdict == REFUSED:
            lane.spent -= cost
            self.awaited = 0
            self.fail(MPIError(ERR_OTHER, f"the kernel refuses this process to send to rank {self.peer}"))
            return OK
        self.no_longer(AWAIT_SENT)
        return OK

    cdef int stand_for(self, Mtl mtl, Communicator comm, const char *data, uint64_t length, int dest, int tag,
                       int mode) except -1:
        """Stand for a blocking send that the kernel has queued."""
        Py_INCREF(self)
        self.mtl = mtl
        self.communicator = comm
        self.node = self.engine.node_of(comm, dest)
        self.data = data
        self.peer = dest
        self.tag = tag
        self.length = self.nbytes = length
        self.operation = SEND + mode
        self.begin()
        self.awaited = AWAIT_SENT
        return 0

    cdef bint go_on_from_copy(self) except -1:
        """Copies for the kernel, which may be sending, and for whoever is to send or read later."""
        if not self.engine.qkernel.set_aside(self.node, self.data, self.length):
            return False
        if self.awaited == 0 or self.read_entry >= 0:
            self.buffer = self.set_aside()
        if self.read_entry >= 0:
            self.engine.descriptors[self.engine.entries[self.read_entry].descriptor].start = <char *> self.data
        return True

    cdef int expect(self, bint readable) except -1:
        """Entries for words of this message, and for its memory."""
        cdef Engine engine = self.engine
        engine.serial += 1
        self.bits = (<uint64_t> <void *> self) << 32 | (engine.serial & 0xFFFFFFFF)
        self.acknowledge_entry = self.link(PORTAL_ACKNOWLEDGE)
        make_independent(&engine.descriptors[engine.entries[self.acknowledge_entry].descriptor], &self.acknowledgement, 1,
                         WRITE, SAVE_HEADER, CIRCULAR)
        self.acknowledgement.state = 0
        if readable:
            self.read_entry = self.link(PORTAL_READ)
            make_single(&engine.descriptors[engine.entries[self.read_entry].descriptor], <char *> self.data, self.length,
                        READ, SAVE_BODY, SENDER_OFFSET)
        return 0

    cdef int link(self, int portal) except -1:
        cdef Engine engine = self.engine
        cdef int entry = engine.new_entry()
        cdef int descriptor = engine.new_descriptor()
        cdef MatchEntry *made
        if entry < 0 or descriptor < 0:
            raise engine.no_room(entry, descriptor)
        made = &engine.entries[entry]
        made.match_bits = self.bits
        made.mask = <uint64_t> -1
        made.source_group = ANY_GROUP
        made.source_rank = ANY_RANK
        made.too_long = LINK_END
        made.invalid = LINK_NEXT
        made.descriptor = descriptor
        made.owner = <uint64_t> <void *> self
        Py_INCREF(self)
        engine.insert(portal, entry, LINK_END)
        return entry

    cdef int unlink(self) except -1:
        cdef int entry = self.read_entry
        self.read_entry = -1
        self.take_off(entry)
        entry = self.acknowledge_entry
        self.acknowledge_entry = -1
        return self.take_off(entry)

    cdef int take_off(self, int entry) except -1:
        if entry < 0:
            return 0
        self.engine.remove(entry)
        self.engine.free_descriptor(self.engine.entries[entry].descriptor)
        self.engine.free_entry(entry)
        Py_DECREF(self)
        return 0

    cdef int no_longer(self, int what) except -1:
        self.awaited &= ~what
        if self.awaited == 0 and not self.complete:
            self.unlink()
            return self.finish()
        return 0

    cpdef int fail(self, object error) except -1:
        """Complete with an error."""
        if self.read_entry >= 0:
            self.engine.qkernel.abandon(self.engine, self.engine.entries[self.read_entry].descriptor)
        self.unlink()
        return MtlSend.fail(self, error)

    # -- events ---------------------------------------------------------------------------------------------------

    cdef int acknowledged(self, const Header *header) except -1:
        cdef int saved = header.user_data[0]
        self.acknowledgement.state = 0
        if self.complete:
            return 0
        if not header.flags & ACKNOWLEDGEMENT:
            if saved == WORD_DISCARDED:
                return self.fail(MPIError(ERR_OTHER, f"a ready send of {self.length} bytes to rank {self.peer} with tag "
                                                     f"{self.tag}, but no receive was posted there"))
            return self.no_longer(AWAIT_ACKNOWLEDGEMENT if saved == WORD_THROWN_AWAY else AWAIT_WORD)
        if not saved & SAVE_BODY and not self.was_read:
            self.awaited |= AWAIT_READ
        return self.no_longer(AWAIT_ACKNOWLEDGEMENT)

    cdef int read(self) except -1:
        """The receiver has read what it wanted."""
        self.was_read = True
        if self.complete:
            return 0
        return self.no_longer(AWAIT_READ)

    cdef int out(self, int status) except -1:
        """The kernel needs the memory no more."""
        try:
            if self.complete:
                return 0
            if status:
                self.fail(MPIError(status, f"a message to rank {self.peer} could not be sent"))
            else:
                self.no_longer(AWAIT_SENT)
        finally:
            Py_DECREF(self)
        return 0
