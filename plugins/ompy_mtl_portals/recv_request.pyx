# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The receiver's half of mtl/portals' protocols; pictured in `recv_request.pxd`."""
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from ompy.core.constants cimport ANY_SOURCE, ANY_TAG
from ompy.core.errors import ERR_OTHER, MPIError
from ompy.core.proc cimport table
from ompy.mca.mtl cimport loss

from ompy_mtl_portals.wire cimport (
    CONTEXTS, PORTAL_ACKNOWLEDGE, PORTAL_READ, PORTAL_RECEIVE, PROTOCOL_SYNCHRONOUS, TYPE_LONG, TYPE_REPLY, WORD_MATCHED,
    WORD_THROWN_AWAY, match_bits, source_of, tag_of,
)
from ompy_puma.descriptor cimport ACKNOWLEDGE, BUFFER_FREE, SAVE_BOTH, TRUNCATE, WRITE, make_independent
from ompy_puma.header cimport RETURN
from ompy_puma.heap cimport letter_body, letter_size
from ompy_puma.match_list cimport ANY_GROUP, ANY_RANK, LINK_END, LINK_NEXT

cdef uint64_t TAG_MASK = 0xFFFFFFFF00000000u
# The library's own tags are negative, and no wildcard takes them.
cdef uint64_t TAG_SIGN = 0x8000000000000000u
cdef uint64_t SOURCE_MASK = 0xFFFF0000u
cdef uint64_t CONTEXT_MASK = <uint64_t> (CONTEXTS - 1) << 3


cdef void aim(MatchEntry *entry, PortalContext context, int source, int tag) noexcept:
    cdef uint64_t mask = CONTEXT_MASK | TYPE_REPLY
    mask |= SOURCE_MASK if source != ANY_SOURCE else 0
    mask |= TAG_MASK if tag != ANY_TAG else TAG_SIGN
    entry.match_bits = match_bits(0 if tag == ANY_TAG else tag, 0 if source == ANY_SOURCE else source, context.number, 0)
    entry.mask = mask
    entry.source_group = ANY_GROUP
    entry.source_rank = ANY_RANK


cdef class TakenMessage(Message):
    def __dealloc__(self):
        free(self.letter)


cdef class PortalsRecv(MtlRecv):
    def __cinit__(self):
        self.entry = -1

    cdef int post(self) except -1:
        """Take the oldest message in the heap that matches, or stand in the list; in one step, as the kernel sees it."""
        cdef Engine engine = self.engine
        cdef Letter *letter
        cdef int descriptor
        self.context = <PortalContext> self.communicator.pml
        self.pulling = False
        if self.wanted_source != ANY_SOURCE:
            self.node = engine.node_of(self.context.communicator, self.wanted_source)
        descriptor = self.link()
        aim(&engine.entries[self.entry], self.context, self.wanted_source, self.wanted_tag)
        self.arriving.address = self.data
        self.arriving.length = self.capacity
        self.arriving.state = BUFFER_FREE
        # Memory made at match time: whatever has a body is too long, and goes to the heap.
        make_independent(&engine.descriptors[descriptor], &self.arriving, 1, WRITE, SAVE_BOTH,
                         ACKNOWLEDGE if self.allocate is not None else ACKNOWLEDGE | TRUNCATE)
        engine.entries[self.entry].too_long = engine.short_overflow
        letter = engine.search_or_activate(engine.heap_descriptor, PORTAL_RECEIVE, self.entry, engine.short_catch_all)
        if letter != NULL:
            return self.take(letter, True)
        failure = loss(self.context.communicator, self.wanted_source)
        return self.fail(failure) if failure is not None else 0

    cdef int link(self) except -1:
        """An entry with a descriptor, in no list yet; returns the descriptor."""
        cdef Engine engine = self.engine
        cdef int entry = engine.new_entry()
        cdef int descriptor = engine.new_descriptor()
        if entry < 0 or descriptor < 0:
            raise engine.no_room(entry, descriptor)
        self.entry = entry
        engine.entries[entry].invalid = LINK_NEXT
        engine.entries[entry].descriptor = descriptor
        engine.entries[entry].portal = -1
        engine.entries[entry].owner = <uint64_t> <void *> self
        Py_INCREF(self)
        return descriptor

    cdef int unlink(self) except -1:
        cdef Engine engine = self.engine
        cdef int entry = self.entry
        if entry < 0:
            return 0
        self.entry = -1
        engine.remove(entry)
        engine.free_descriptor(engine.entries[entry].descriptor)
        engine.free_entry(entry)
        Py_DECREF(self)
        return 0

    cdef bint withdraw(self) except -1:
        """Out of the list, if nothing has come yet."""
        if self.entry < 0 or self.engine.entries[self.entry].portal < 0 or self.pulling:
            return False
        self.unlink()
        return True

    cdef int forget(self) except -1:
        """Whatever is still on its way into our memory is thrown away."""
        cdef int descriptor
        if self.entry < 0:
            return 0
        descriptor = self.engine.entries[self.entry].descriptor
        self.engine.qkernel.abandon(self.engine, descriptor)
        # A reply that is still to come fits all the same.
        self.arriving.length = 0
        self.engine.descriptors[descriptor].options |= TRUNCATE
        return 0

    # -- a message in the heap ------------------------------------------------------------------------------------

    cdef int take(self, Letter *letter, bint listed) except -1:
        cdef Header header = letter.header
        if header.match_bits & TYPE_LONG:
            # Read by a name of our own, so that nothing points into the heap once its letter is released.
            if listed:
                self.engine.release(letter)
            return self.pull(&header)
        self.open(source_of(header.match_bits), tag_of(header.match_bits), header.length)
        self.place(0, letter_body(letter), letter.length)
        self.note(&header)
        if listed:
            self.engine.release(letter)
        self.unlink()
        self.acknowledge()
        return self.finish()

    cdef int pull(self, const Header *header) except -1:
        """Read the body from its sender's memory: the entry now accepts the reply."""
        cdef Engine engine = self.engine
        cdef Header request
        cdef char *target = self.landing(source_of(header.match_bits), tag_of(header.match_bits), header.length)
        cdef MatchEntry *entry
        self.node = header.source_rank
        if engine.peers[self.node].failed:
            return self.fail(table.at(self.node).failure)
        if self.entry < 0:
            self.link()
        self.note(header)
        self.pulling = True
        entry = &engine.entries[self.entry]
        engine.serial += 1
        entry.match_bits = (engine.serial << 3) | TYPE_REPLY
        entry.mask = <uint64_t> -1
        entry.source_group = ANY_GROUP
        entry.source_rank = ANY_RANK
        entry.too_long = LINK_END
        self.arriving.address = target
        self.arriving.length = self.wanted
        self.arriving.state = BUFFER_FREE
        make_independent(&engine.descriptors[entry.descriptor], &self.arriving, 1, WRITE, SAVE_BOTH, 0)
        engine.remove(self.entry)
        engine.insert(PORTAL_RECEIVE, self.entry, engine.first())
        engine.pulled += 1
        memset(&request, 0, sizeof(request))
        request.portal = PORTAL_READ
        request.match_bits = self.sender
        request.flags = RETURN
        request.return_portal = PORTAL_RECEIVE
        request.return_match_bits = entry.match_bits
        request.return_length = self.wanted
        return engine.word(self.node, &request)

    cdef int note(self, const Header *header) except -1:
        """Keep what the answers to the sender need."""
        self.node = header.source_rank
        self.synchronous = header.user_data[0] == PROTOCOL_SYNCHRONOUS
        if header.flags & RETURN:
            self.sender = header.return_match_bits
        else:
            memcpy(&self.sender, &header.user_data[1], sizeof(self.sender))
        return 0

    cdef int acknowledge(self) except -1:
        """Tell the sender of a synchronous message that it was matched."""
        if self.synchronous:
            self.synchronous = False
            return self.engine.say(self.node, PORTAL_ACKNOWLEDGE, self.sender, WORD_MATCHED)
        return 0

    # -- events ---------------------------------------------------------------------------------------------------

    cdef int matched(self) except -1:
        """The body is on its way here: the next message is another receive's."""
        self.engine.remove(self.entry)
        return 0

    cdef int whole(self, const Header *header) except -1:
        """All that fits is in our memory."""
        cdef int source, tag
        if self.pulling:
            self.unlink()
            self.acknowledge()
            return self.landed()
        source = source_of(header.match_bits)
        tag = tag_of(header.match_bits)
        self.unlink()
        self.refund(header)
        self.acknowledge()
        return self.deposited(source, tag, header.length)

    cdef int refund(self, const Header *header) except -1:
        """Of a message that went past the heap, which its sender has paid for as one in it."""
        cdef uint64_t size = letter_size(0 if header.match_bits & TYPE_LONG else header.length)
        self.note(header)
        return self.engine.give_back(self.node, tag_of(header.match_bits), size)

    cdef int lost(self, const Header *header) except -1:
        """The rest of the body will not come, or is not wanted."""
        self.unlink()
        if not self.pulling:
            self.refund(header)
            if header.flags & RETURN:            # the kernel acknowledges only what it has saved
                self.engine.say(self.node, PORTAL_ACKNOWLEDGE, self.sender, WORD_THROWN_AWAY)
        self.acknowledge()
        if self.abandoned:
            return self.finish()
        return self.fail(table.at(self.node).failure
                         or MPIError(ERR_OTHER, "the sender of a message is gone before all of it was here"))

    cpdef int fail(self, object error) except -1:
        """Complete with an error; nothing is put into our memory any more."""
        if self.complete:
            return 0
        if self.entry >= 0:
            self.engine.qkernel.abandon(self.engine, self.engine.entries[self.entry].descriptor)
            self.unlink()
        return MtlRecv.fail(self, error)
