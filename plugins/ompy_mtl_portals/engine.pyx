# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""What sends and receives of mtl/portals share; see `engine.pxd`."""
from collections import deque

from libc.stdint cimport uint16_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from ompy.core.constants cimport OK
from ompy.core.constants cimport OUT_OF_RESOURCE as NO_ROOM
from ompy.core.errors import ERR_ARG, ERR_NO_MEM, ERR_OTHER, MPIError
from ompy.core.proc cimport table

from ompy_mtl_portals.context cimport ASKED, UNKNOWN
from ompy_mtl_portals.flow cimport LANES, Lane, lane_of
from ompy_mtl_portals.wire cimport (
    CONTROL_ASK, CONTROL_CREDIT, CONTROL_TELL, PORTAL_CONTROL, PORTAL_RECEIVE, PORTALS, TYPE_ALL, TYPE_LONG, TYPE_REPLY,
    context_of, tag_of,
)
from ompy_puma.btl_wire cimport kernel_over
from ompy_puma.capability cimport GroupCapability
from ompy_puma.descriptor cimport (
    ACKNOWLEDGE, CIRCULAR, SAVE_BOTH, SAVE_HEADER, WRITE, make_dynamic, make_independent, make_overlay,
)
from ompy_puma.heap cimport Heap, format_heap, letter_size, newer_letter, oldest_letter, release_letter
from ompy_puma.transmission cimport OUT_OF_RESOURCE
from ompy_puma.match_list cimport ANY_GROUP, ANY_RANK, LINK_END, PORTAL_DESCRIPTOR, PORTAL_LIST

# The kernel's own limit.  Its answers for us (acknowledgements, replies) are bounded by what peers may have under way, so it
# is far above ours: none is ever dropped.
QUEUE_LIMIT = 1 << 20

# What every node calls the process of mtl/portals: its place in the context tables, and its process group.
cdef enum:
    CONTEXT = 1
    GROUP = 1


cdef class Engine(Process):
    """The process behind mtl/portals.

    Parameters:
        bml: leads to the BTLs that the kernel rides on.
        node: this process's rank in the job.
        heap_size: bytes for messages that nobody waits for.
        short_limit: bytes; longer messages are saved by their header alone.
        requests: receives and long sends that may be under way.
        queue_limit, portals, entries, descriptors: of `Process`.
    """

    def __init__(self, Bml bml not None, uint32_t node, uint64_t heap_size, uint64_t short_limit, int requests):
        cdef QKernel kernel = kernel_over(bml, node)
        self.bml = bml
        self.qkernel = kernel
        self.nodes = len(table)
        Process.__init__(self, GROUP, kernel.node, portals=PORTALS, entries=2 * requests + 8, descriptors=2 * requests + 8,
                         queue_limit=QUEUE_LIMIT)
        self.contexts = ContextTable()
        self.stalled = {}
        self.unsent = deque()
        self.peers = <Peer *> calloc(max(self.nodes, 1), sizeof(Peer))
        self.heap = <char *> calloc(heap_size // 16, 16)
        if self.peers == NULL or self.heap == NULL:
            raise MemoryError(f"no memory for a heap of {heap_size} bytes")
        self.share_out(heap_size, short_limit)
        format_heap(self.heap, heap_size // 16 * 16)
        self.lay_out(heap_size // 16 * 16)
        kernel.create_context(self, CONTEXT)
        self.capability = self.grant(GroupCapability(GROUP, [(node, CONTEXT) for node in range(self.nodes)]))

    def __dealloc__(self):
        free(self.peers)
        free(self.heap)

    def share_out(self, uint64_t heap_size, uint64_t short_limit):
        """Each sender's share of a heap, by lane, and what it means for short messages."""
        cdef uint64_t share = (heap_size - sizeof(Heap) - 64) // max(self.nodes, 1)
        self.allowance[1] = share // 4
        self.allowance[0] = share - self.allowance[1]
        for btl in self.bml.btls:
            short_limit = min(short_limit, max(btl.eager_limit, sizeof(Header)) - sizeof(Header))
        # Two of the longest fit: one is on its way while the other is received.
        self.short_limit = min(short_limit, self.allowance[1] // 2 - min(self.allowance[1] // 2, letter_size(0) + 16))
        if self.allowance[1] < 2 * (letter_size(0) + 16):
            raise MPIError(ERR_ARG, f"mtl_portals_heap: {heap_size} bytes among {self.nodes} processes are {share} for each, "
                                    f"and at least {8 * (letter_size(0) + 16)} are needed")

    def lay_out(self, uint64_t heap_size):
        """The portal table before any receive is posted."""
        cdef int below = self.new_descriptor()
        cdef int above = self.new_descriptor()
        cdef int control = self.new_descriptor()
        cdef int entry
        self.heap_descriptor = below
        make_dynamic(&self.descriptors[below], self.heap, heap_size, SAVE_BOTH, 0)
        make_overlay(&self.descriptors[above], &self.descriptors[below], below, SAVE_HEADER, ACKNOWLEDGE)
        self.short_catch_all = self.catcher(below, TYPE_ALL, 0)
        self.long_catch_all = self.catcher(above, TYPE_ALL, TYPE_LONG)
        self.short_overflow = self.catcher(below, TYPE_LONG | TYPE_REPLY, 0)
        self.long_overflow = self.catcher(above, TYPE_LONG | TYPE_REPLY, TYPE_LONG)
        self.insert(PORTAL_RECEIVE, self.short_catch_all, LINK_END)
        self.insert(PORTAL_RECEIVE, self.long_catch_all, LINK_END)
        entry = self.short_overflow
        self.entries[entry].no_match = self.long_overflow
        make_independent(&self.descriptors[control], &self.control_buffer, 1, WRITE, SAVE_HEADER, CIRCULAR)
        self.portals[PORTAL_CONTROL].kind = PORTAL_DESCRIPTOR
        self.portals[PORTAL_CONTROL].index = control

    def catcher(self, int descriptor, uint64_t mask, uint64_t bits):
        """An entry, in no list yet, for messages of some types from anybody."""
        cdef int entry = self.new_entry()
        self.entries[entry].match_bits = bits
        self.entries[entry].mask = mask
        self.entries[entry].source_group = ANY_GROUP
        self.entries[entry].source_rank = ANY_RANK
        self.entries[entry].no_match = LINK_END
        self.entries[entry].too_long = LINK_END
        self.entries[entry].invalid = LINK_END
        self.entries[entry].descriptor = descriptor
        self.entries[entry].owner = 0
        return entry

    cdef int node_of(self, Communicator comm, int rank) except -1:
        cdef int node = comm.remote_group.members[rank]
        if <uint32_t> node >= self.nodes:
            raise MPIError(ERR_OTHER, f"rank {rank} of {comm!r} belongs to another job, which mtl portals does not reach")
        return node

    cdef Peer *peer(self, int node) except NULL:
        cdef Peer *peer = &self.peers[node]
        if not peer.met:
            peer.met = True
            peer.lanes[0].granted = self.allowance[0]
            peer.lanes[1].granted = self.allowance[1]
        return peer

    # -- heap and credit ------------------------------------------------------------------------------------------

    cdef int give_back(self, int node, int tag, uint64_t size) except -1:
        cdef int number = lane_of(tag)
        cdef Lane *lane = &self.peers[node].lanes[number]
        lane.returned += size
        if lane.returned - lane.told >= self.allowance[number] // 2:
            lane.told = lane.returned
            self.control(node, CONTROL_CREDIT, lane.told, number)
        return 0

    cdef int release(self, Letter *letter) except -1:
        cdef int node = letter.header.source_rank
        cdef int tag = tag_of(letter.header.match_bits)
        cdef uint64_t size = letter_size(letter.length)
        release_letter(self.heap, letter)
        return self.give_back(node, tag, size)

    def drop_letters(self, int context):
        """The communicator is gone: nobody will receive what is left of it."""
        cdef Letter *letter = oldest_letter(self.heap)
        cdef Letter *newer
        while letter != NULL:
            newer = newer_letter(self.heap, letter)
            if context_of(letter.header.match_bits) == context:
                self.release(letter)
            letter = newer

    # -- words between MTLs ---------------------------------------------------------------------------------------

    cdef int word(self, int node, Header *header) except -1:
        cdef int verdict
        if self.peers[node].failed:
            return 0
        if not self.unsent:
            verdict = self.qkernel.send_app_msg(self, self.capability, node, header, NULL, 0, 0, NULL)
            if verdict != OUT_OF_RESOURCE:
                return 0
        self.unsent.append((node, (<char *> header)[:sizeof(Header)]))
        return 0

    cdef int say(self, int node, int portal, uint64_t bits, int what) except -1:
        cdef Header header
        memset(&header, 0, sizeof(header))
        header.portal = portal
        header.match_bits = bits
        header.user_data[0] = what
        return self.word(node, &header)

    cdef int control(self, int node, int what, uint64_t argument, int detail) except -1:
        cdef Header header
        cdef uint16_t number = detail
        memset(&header, 0, sizeof(header))
        header.portal = PORTAL_CONTROL
        header.match_bits = argument
        header.user_data[0] = what
        memcpy(&header.user_data[2], &number, sizeof(number))
        return self.word(node, &header)

    cdef int ask(self, PortalContext context, int rank, MtlSend request) except -1:
        if context.theirs[rank] == UNKNOWN:
            self.control(self.node_of(context.communicator, rank), CONTROL_ASK, context.communicator.context, 0)
            context.theirs[rank] = ASKED
        context.waiting.setdefault(rank, deque()).append(request)
        return 0

    def answer(self, int node, PortalContext context not None):
        """Tell a peer our number of a communicator."""
        self.control(node, CONTROL_TELL, context.communicator.context, context.number)

    cdef int told(self, const Header *header) except -1:
        """A word has arrived at PORTAL_CONTROL."""
        cdef int node = header.source_rank
        cdef int what = header.user_data[0]
        cdef uint16_t detail
        cdef PortalContext context
        cdef int rank
        memcpy(&detail, &header.user_data[2], sizeof(detail))
        if what == CONTROL_CREDIT and detail < LANES:
            self.peer(node).lanes[detail].granted = self.allowance[detail] + header.match_bits
            return self.push(node, detail)
        context = self.contexts.named.get(header.match_bits)
        if what == CONTROL_ASK:
            if self.contexts.number_for(header.match_bits, node):
                self.answer(node, context)
        elif what == CONTROL_TELL and context is not None:
            rank = context.communicator.remote_group.rank_of(node)
            if rank >= 0 and context.theirs[rank] == ASKED:
                context.theirs[rank] = detail
                for request in context.waiting.pop(rank, ()):
                    self.stall(node, (<MtlSend> request).tag, request)
                self.push(node, 0)
                self.push(node, 1)
        return 0

    # -- sends that wait ------------------------------------------------------------------------------------------

    cdef int stall(self, int node, int tag, MtlSend request) except -1:
        cdef int lane = lane_of(tag)
        self.stalled.setdefault((node, lane), deque()).append(request)
        self.peers[node].lanes[lane].stalled += 1
        self.stalls += 1
        return 0

    cdef int push(self, int node, int lane) except -1:
        """Launch what waits in a lane, oldest first, as far as it goes."""
        cdef MtlSend request
        cdef Lane *state = &self.peers[node].lanes[lane]
        if state.pushing or state.stalled == 0:
            return OK
        # Whoever is told that a send is complete may send, and come here again.
        state.pushing = True
        queue = self.stalled[node, lane]
        try:
            while queue:
                request = queue.popleft()
                if not request.complete and self.launch(request) != OK:
                    queue.appendleft(request)
                    return NO_ROOM
                state.stalled -= 1
            del self.stalled[node, lane]
        finally:
            state.pushing = False
        return OK

    cdef int push_all(self) except -1:
        """The kernel has room again."""
        cdef Header header
        while self.unsent:
            node, data = self.unsent[0]
            memcpy(&header, <const char *> data, sizeof(header))
            if not self.peers[<int> node].failed and self.qkernel.send_app_msg(
                self, self.capability, node, &header, NULL, 0, 0, NULL
            ) == OUT_OF_RESOURCE:
                return 0
            self.unsent.popleft()
        for node, lane in list(self.stalled):
            self.push(node, lane)
        return 0

    cdef int launch(self, MtlSend request) except -1:
        raise NotImplementedError

    cdef object no_room(self, int entry, int descriptor):
        if entry >= 0:
            self.free_entry(entry)
        if descriptor >= 0:
            self.free_descriptor(descriptor)
        return MPIError(ERR_NO_MEM, f"the {self.entry_count} match entries for receives, and for sends that are long or "
                                    f"synchronous, are in use: complete some, or set mtl_portals_requests higher")

    cdef int first(self) noexcept:
        return self.portals[PORTAL_RECEIVE].index

    def owners(self, int portal):
        """Whose the entries of a matching list are, in its order."""
        cdef int entry = self.portals[portal].index if self.portals[portal].kind == PORTAL_LIST else LINK_END
        found = []
        while entry != LINK_END:
            if self.entries[entry].owner:
                found.append(<object> <void *> self.entries[entry].owner)
            entry = self.entries[entry].no_match
        return found

    cdef int fail_stalled(self, int node, object error) except -1:
        cdef PortalContext context
        cdef MtlSend request
        cdef int lane, rank
        doomed = []
        for lane in range(LANES):
            doomed += self.stalled.get((node, lane), ())
        for context in self.contexts.named.values():
            rank = context.communicator.remote_group.rank_of(node)
            if rank >= 0:
                doomed += context.waiting.pop(rank, ())
        for request in doomed:
            if not request.complete:
                request.fail(error)
        for lane in range(LANES):
            self.push(node, lane)                # takes out what is complete
        return 0
