# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""mtl/portals: MPI's matching done by the kernel of Puma portals."""
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from ompy.core.constants cimport MODE_READY, OK
from ompy.core.constants cimport OUT_OF_RESOURCE as NO_ROOM
from ompy.core.errors import ERR_OTHER, ERR_REQUEST, MPIError
from ompy.core.owner cimport enter, leave
from ompy.core.proc cimport Proc
from ompy.core.progress cimport wait
from ompy.core.status cimport StatusRecord
from ompy.mca.bml cimport Bml
from ompy.mca.mtl cimport INTERFACE, MtlRecv, MtlSend, loss, wait_for_departures
from ompy.mca.pml cimport Message

from ompy_mtl_portals.context cimport ASKED, UNKNOWN, PortalContext
from ompy_mtl_portals.flow cimport QUEUED_LIMIT, Lane, lane_of
from ompy_mtl_portals.recv_request cimport TakenMessage, aim
from ompy_mtl_portals.wire cimport (
    PORTAL_ACKNOWLEDGE, PORTAL_CONTROL, PORTAL_RECEIVE, TYPE_LONG, TYPE_READY, TYPE_REPLY, WORD_DISCARDED,
    context_of, match_bits, source_of, tag_of,
)
from ompy_puma.btl_wire cimport forget_kernel
from ompy_puma.descriptor cimport BUFFER_FREE
from ompy_puma.header cimport RETURN
from ompy_puma.heap cimport Heap, find_letter, letter_size, newer_letter, oldest_letter
from ompy_puma.transmission cimport QUEUED, REFUSED, SENT
from ompy_puma.match_list cimport MatchEntry
from ompy_puma.process cimport EVENT_DEPOSITED, EVENT_DROPPED, EVENT_LOST, EVENT_MATCHED, EVENT_READ

interface = INTERFACE


cdef class Listener(Engine):
    cdef int arrived(self, Event *event) except -1:
        cdef const Header *header = event.header
        cdef PortalsSend sending
        if header.source_rank >= self.nodes:
            return 0
        if event.kind == EVENT_DROPPED:
            return self.dropped(event)
        if event.portal == PORTAL_RECEIVE:
            return self.received(event)
        if event.portal == PORTAL_CONTROL:
            self.control_buffer.state = BUFFER_FREE
            return self.told(header)
        if event.owner == 0 or event.kind == EVENT_LOST:
            return 0
        # A reference of ours: the entry's, which it gives back meanwhile, may be the last one.
        sending = <PortalsSend> <void *> event.owner
        if event.portal == PORTAL_ACKNOWLEDGE:
            return sending.acknowledged(header)
        if event.kind == EVENT_READ:
            return sending.read()
        return 0

    cdef int received(self, Event *event) except -1:
        cdef PortalsRecv request
        if event.owner != 0:
            request = <PortalsRecv> <void *> event.owner
            if event.kind == EVENT_DEPOSITED:
                return request.whole(event.header)
            return request.matched() if event.kind == EVENT_MATCHED else request.lost(event.header)
        if event.letter == NULL:
            return 0
        if event.refused >= 0 and self.entries[event.refused].owner:
            request = <PortalsRecv> <void *> self.entries[event.refused].owner
            return request.take(event.letter, True)
        self.unexpected += 1
        return 0

    cdef int dropped(self, Event *event) except -1:
        """A ready send for which no receive was posted; its credit goes back, and a sender that waits is told."""
        cdef const Header *header = event.header
        cdef uint64_t bits = header.match_bits
        if event.portal != PORTAL_RECEIVE or bits & TYPE_REPLY:
            return 0
        self.discarded += 1
        self.give_back(header.source_rank, tag_of(bits), letter_size(0 if bits & TYPE_LONG else header.length))
        if header.flags & RETURN:
            self.say(header.source_rank, PORTAL_ACKNOWLEDGE, header.return_match_bits, WORD_DISCARDED)
        return 0

    cdef int sent(self, uint64_t owner, int status) except -1:
        if owner:
            (<PortalsSend> <void *> owner).out(status)
        return self.push_all()

    cdef int launch(self, MtlSend request) except -1:
        return (<PortalsSend> request).launch()


cdef class PortalsMtl(Mtl):
    """MPI messages over portals.

    Parameters:
        bml: leads to the BTLs that the kernel rides on.
        node: this process's rank in the job.
        heap: bytes for messages that nobody waits for, of all senders together.
        short_limit: bytes; a longer message that nobody waits for stays with its sender, and is read from there.
        requests: receives and long sends that may be under way.
    """

    def __init__(self, Bml bml not None, uint32_t node, uint64_t heap=16 << 20, uint64_t short_limit=16384,
                 int requests=1 << 17):
        self.name = "portals"
        self.engine = Listener(bml, node, heap, short_limit, requests)

    cpdef int add_comm(self, Communicator comm) except -1:
        """Number the communicator; peers that have asked for its number already are told."""
        cdef PortalContext context = self.engine.contexts.add(comm)
        comm.pml = context
        for node in self.engine.contexts.early.pop(comm.context, ()):
            self.engine.answer(node, context)
        return 0

    cpdef int del_comm(self, Communicator comm) except -1:
        """Forget the communicator; what was not received is dropped."""
        if comm.pml is not None:
            self.engine.contexts.drop(comm.pml)
            self.engine.drop_letters((<PortalContext> comm.pml).number)
        return 0

    # -- sending --------------------------------------------------------------------------------------------------

    cpdef MtlSend new_send(self):
        """An empty send."""
        cdef PortalsSend request = PortalsSend.__new__(PortalsSend)
        request.engine = self.engine
        return request

    cdef int send(self, const char *data, uint64_t length, int dest, int tag, int mode, Communicator comm) except -1:
        cdef Engine engine = self.engine
        cdef PortalContext context = <PortalContext> comm.pml
        cdef int theirs = context.theirs[dest]
        cdef int node, verdict
        cdef Lane *lane
        cdef Header header
        cdef PortalsSend spare
        if theirs == UNKNOWN or theirs == ASKED or length > engine.short_limit:
            return NO_ROOM
        node = comm.remote_group.members[dest]
        lane = &engine.peers[node].lanes[lane_of(tag)]
        if lane.stalled or lane.spent + letter_size(length) > lane.granted or engine.queued >= QUEUED_LIMIT \
                or engine.peers[node].failed:
            return NO_ROOM
        spare = self.spare
        if spare is None:
            spare = self.new_send()
        memset(&header, 0, sizeof(header))
        header.portal = PORTAL_RECEIVE
        header.match_bits = match_bits(tag, comm.rank, theirs, TYPE_READY if mode == MODE_READY else 0)
        enter()
        try:
            lane.spent += letter_size(length)
            verdict = engine.qkernel.send_app_msg(engine, engine.capability, node, &header, data, length,
                                                  <uint64_t> <void *> spare, NULL)
        finally:
            leave()
        if verdict == SENT:
            self.spare = spare
            return OK
        self.spare = None
        if verdict == QUEUED:
            spare.stand_for(self, comm, data, length, dest, tag, mode)
            try:
                wait(spare)
            except BaseException:
                spare.abandon(None)
                raise
            if spare.error is not None:
                raise spare.error
            return OK
        lane.spent -= letter_size(length)
        if verdict == REFUSED:
            raise MPIError(ERR_OTHER, f"the kernel refuses this process to send to rank {dest}")
        return NO_ROOM

    cpdef int isend(self, MtlSend request) except -1:
        """Send by the protocol that length and mode ask for."""
        return (<PortalsSend> request).submit()

    cpdef bint set_aside(self, MtlSend request) except -1:
        """What the kernel is sending goes on from a copy, and a peer that reads later finds one."""
        return (<PortalsSend> request).go_on_from_copy()

    # -- receiving ------------------------------------------------------------------------------------------------

    cpdef MtlRecv new_recv(self):
        """An empty receive."""
        cdef PortalsRecv request = PortalsRecv.__new__(PortalsRecv)
        request.engine = self.engine
        return request

    cpdef int irecv(self, MtlRecv request) except -1:
        """Search the heap, else stand in the list."""
        return (<PortalsRecv> request).post()

    cpdef bint withdraw(self, MtlRecv request) except -1:
        """Take a receive back that was not matched."""
        return (<PortalsRecv> request).withdraw()

    cpdef int forget(self, MtlRecv request) except -1:
        """Put nothing into its memory any more."""
        return (<PortalsRecv> request).forget()

    cdef Letter *find(self, int source, int tag, Communicator comm) noexcept:
        cdef MatchEntry wanted
        aim(&wanted, <PortalContext> comm.pml, source, tag)
        return find_letter(self.engine.heap, &wanted)

    cdef bint iprobe(self, int source, int tag, Communicator comm, StatusRecord *status) except -1:
        cdef Letter *letter = self.find(source, tag, comm)
        if letter == NULL:
            return False
        if status != NULL:
            fill_status(letter, status)
        return True

    cpdef Message improbe(self, int source, int tag, Communicator comm):
        """Take a message out of the heap; None when there is none."""
        cdef Letter *letter = self.find(source, tag, comm)
        cdef TakenMessage taken
        if letter == NULL:
            return None
        taken = TakenMessage.__new__(TakenMessage)
        taken.letter = <Letter *> malloc(sizeof(Letter) + letter.length)
        if taken.letter == NULL:
            raise MemoryError(f"no memory for a message of {letter.length} bytes")
        memcpy(taken.letter, letter, sizeof(Letter) + letter.length)
        taken.communicator = comm
        fill_status(letter, &taken.status)
        self.engine.release(letter)
        return taken

    cpdef int imrecv(self, MtlRecv request, Message message) except -1:
        """Receive a message that was taken out."""
        cdef TakenMessage taken = <TakenMessage?> message
        cdef Letter *letter = taken.letter
        if letter == NULL:
            raise MPIError(ERR_REQUEST, "this message was received already")
        if letter.header.match_bits & TYPE_LONG:
            (<PortalsRecv> request).link()       # where there is no room, the message can still be received
        taken.letter = NULL
        (<PortalsRecv> request).context = <PortalContext> (<Communicator> taken.communicator).pml
        try:
            (<PortalsRecv> request).take(letter, False)
        finally:
            free(letter)
        return 0

    # -- trouble and the end --------------------------------------------------------------------------------------

    cpdef int peer_lost(self, Proc proc) except -1:
        """Whatever involves the process fails."""
        cdef Listener engine = self.engine
        cdef PortalsRecv request
        if <uint32_t> proc.index >= engine.nodes:
            return 0
        engine.peers[proc.index].failed = True
        engine.qkernel.peer_lost(proc.index, proc.failure)
        engine.fail_stalled(proc.index, proc.failure)
        for request in engine.owners(PORTAL_RECEIVE):
            if request.pulling and request.node != proc.index:
                continue
            if request.pulling or loss(request.context.communicator, request.wanted_source) is not None:
                request.fail(proc.failure)
        for sending in engine.owners(PORTAL_ACKNOWLEDGE):
            if (<PortalsSend> sending).node == proc.index:
                sending.fail(proc.failure)
        return 0

    cpdef dict dump(self, Communicator comm):
        """{"posted": [(source, tag)], "unexpected": [(source, tag, bytes)]}, oldest first."""
        cdef PortalContext context = <PortalContext> comm.pml
        cdef PortalsRecv request
        cdef Letter *letter = oldest_letter(self.engine.heap)
        posted = []
        unexpected = []
        for request in self.engine.owners(PORTAL_RECEIVE):
            if request.context is context and not request.pulling:
                posted.append((request.wanted_source, request.wanted_tag))
        while letter != NULL:
            if context_of(letter.header.match_bits) == context.number:
                unexpected.append((source_of(letter.header.match_bits), tag_of(letter.header.match_bits),
                                   letter.header.length))
            letter = newer_letter(self.engine.heap, letter)
        return {"posted": posted, "unexpected": unexpected}

    cpdef dict statistics(self):
        """Counters; of the heap in bytes."""
        cdef Heap *heap = <Heap *> self.engine.heap
        return {
            "unexpected": self.engine.unexpected,
            "pulled": self.engine.pulled,
            "ready_discarded": self.engine.discarded,
            "stalled": self.engine.stalls,
            "heap_used": heap.used,
            "heap_most_used": heap.most_used,
            "heap_letters": heap.letters,
        }

    cpdef int finalize(self) except -1:
        """Get out what was sent; when peers take nothing more for ten seconds, the rest leaves while all meet at the end."""
        wait_for_departures(not_gone, <void *> self.engine)
        return forget_kernel(self.engine.qkernel)


cdef uint64_t not_gone(void *context) except? 0xFFFFFFFFFFFFFFFF:
    cdef Listener engine = <Listener> context
    cdef uint64_t waiting = engine.queued + len(engine.unsent) + sum(map(len, engine.stalled.values()))
    return waiting + (not engine.qkernel.settled())


cdef int fill_status(Letter *letter, StatusRecord *status) except -1:
    status.source = source_of(letter.header.match_bits)
    status.tag = tag_of(letter.header.match_bits)
    status.error = 0
    status.cancelled = False
    status.nbytes = letter.header.length
    return 0
