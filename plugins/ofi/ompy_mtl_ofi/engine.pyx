# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# cython: auto_pickle=False
"""What sends and receives of mtl/ofi share; see `engine.pxd`."""
from collections import deque
from time import monotonic

from libc.stdlib cimport malloc
from libc.string cimport memcpy

from ompy.core.constants cimport OK
from ompy.core.constants cimport OUT_OF_RESOURCE as NO_ROOM
from ompy.core.errors import ERR_OTHER, MPIError
from ompy.mca.mtl cimport loss
from ompy.mca.pml cimport pml

from ompy_mtl_ofi.context cimport ASKED, UNKNOWN, Arrival
from ompy_mtl_ofi.endpoint cimport SLAB, Library
from ompy_mtl_ofi.fabric cimport CANCELLED
from ompy_mtl_ofi.requests cimport OfiRecv, OfiSend
from ompy_mtl_ofi.tags cimport (
    KIND_ANNOUNCED, KIND_BITS, KIND_WORD, MPI_BITS, kind_of, kind_tag, tag_of, who_of,
)

# On the card of a process: the provider, and the endpoint's address behind it.
CARD = "mtl_ofi"

cdef enum:
    WORDS = 32                                   # receives of words
    LOOKS = 2000                                 # some hundred microseconds, after which a body is waited for like all else


# Seconds that the rest of a body of a lost rank is waited for: from a host that is silent it neither comes nor breaks off.
cdef double PATIENCE = 10


cdef bint is_moving(void *context) noexcept nogil:
    """A body is moved on by the provider while it is looked at, and by nothing else."""
    cdef int *looks = <int *> context
    if looks[0] <= 0:
        return False
    looks[0] -= 1
    return True


cdef class Peer:
    """A process, as this endpoint reaches it."""

    def __cinit__(self, Proc proc not None, uint64_t address):
        self.proc = proc
        self.address = address
        self.waiting = deque()


cdef class Engine(Endpoint):
    """The endpoint with all that goes on at it.

    Parameters:
        library: libfabric.
        world: processes of the job.
        eager_limit: bytes; longer messages wait at their sender for a receive.
        piece: bytes of a long message in one operation.
        receives: that the provider matches at most; 0: half of what its queue holds.
        others: of `Endpoint`.
    """

    def __init__(self, Library library not None, int world, uint64_t eager_limit, uint64_t piece, uint64_t receives, **others):
        cdef int _index
        Endpoint.__init__(self, library, eager_limit + max(sizeof(Announcement), sizeof(Word)), **others)
        self.eager_limit = eager_limit
        self.piece = min(piece, self.largest)
        self.most = self.receives // 2
        if receives:
            self.most = min(receives, self.most)
        self.contexts = ContextTable(self.tag_bits - KIND_BITS - MPI_BITS, world)
        self.announced = {}
        self.pulling = {}
        self.breaking_off = []
        self.stalled = []
        self.ready = is_moving
        self.ready_context = &self.looks
        for _index in range(WORDS):
            self.await_word()

    def card(self):
        """What peers need to reach this process."""
        return {CARD: self.provider.encode() + b"\0" + self.name}

    # -- peers ----------------------------------------------------------------------------------------------------

    cdef Peer peer_of(self, Communicator comm, int rank):
        cdef Proc proc = comm.remote_group.proc(rank)
        if proc.pml is None:
            proc.pml = self.meet(proc)
        return <Peer> proc.pml

    def meet(self, Proc proc not None):
        """The peer behind a process, at first contact."""
        provider, _, address = proc.card.get(CARD, b"").partition(b"\0")
        if provider.decode("utf-8", "replace") != self.provider:
            theirs = f"is reached by {provider.decode('utf-8', 'replace')}" if provider else "has no mtl ofi"
            raise MPIError(ERR_OTHER, f"rank {proc.rank} of {proc.job} (host {proc.host}) {theirs}, this process has "
                                      f"{self.provider}: name one for all in mtl_ofi_provider_include")
        peer = Peer(proc, self.insert(address))
        peer.failed = proc.failure is not None
        return peer

    def part(self, Proc proc not None):
        """No more contact with a process."""
        cdef Peer peer = <Peer?> proc.pml
        proc.pml = None
        self.remove(peer.address)

    cdef int lost(self, Peer peer, int error) except -1:
        """The provider does not reach it."""
        if not self.ending and not peer.failed and pml is not None:
            pml.peer_lost(peer.proc, f"mtl ofi ({self.provider}): {self.library.explain(error)}")
        return 0

    cdef uint64_t number(self, uint64_t count=1) noexcept:
        cdef uint64_t last = kind_tag(self.tag_bits, 1) - 1
        cdef uint64_t first = self.numbered + 1 & last
        self.numbered = self.numbered + count & last
        return first

    # -- what goes out --------------------------------------------------------------------------------------------

    cdef int eager(self, Peer peer, const char *data, uint64_t length, uint64_t tag) except -1:
        cdef Operation *operation
        cdef int status
        if length <= self.inject_size:
            status = self.inject(data, length, peer.address, tag)
        else:
            operation = self.take(OUT, peer)
            memcpy(operation.room, data, length)
            operation.length = length
            operation.address = peer.address
            operation.tag = tag
            status = self.send(operation)
            if status != OK:
                self.give(operation)
        if status < 0:
            self.lost(peer, -status)
            return OK
        return status

    cdef int post(self, Peer peer, Operation *operation) except -1:
        cdef int status = NO_ROOM
        operation.address = peer.address
        self.looks = LOOKS
        if peer.head == NULL:
            status = self.send(operation)
        if status == NO_ROOM:
            return self.enqueue(peer, operation)
        if status != OK:
            self.give(operation)
            self.lost(peer, -status)
        return 0

    cdef int enqueue(self, Peer peer, Operation *operation) except -1:
        if peer.failed:
            return self.give(operation)
        operation.next = NULL
        if peer.head == NULL:
            peer.head = operation
        else:
            peer.tail.next = operation
        peer.tail = operation
        return self.stall(peer)

    cdef int wait_in_line(self, Peer peer, MtlSend request) except -1:
        peer.waiting.append(request)
        return self.stall(peer)

    def stall(self, Peer peer not None):
        """Something waits for the provider to have room for it."""
        self.stalls += 1
        if not peer.stalled:
            peer.stalled = True
            self.stalled.append(peer)
        return 0

    cdef int push(self, Peer peer) except -1:
        """Hand on what waits, the oldest first, as far as there is room."""
        cdef Operation *operation
        cdef OfiSend request
        cdef int status
        while peer.head != NULL:
            operation = peer.head
            status = self.send(operation)
            if status == NO_ROOM:
                return NO_ROOM
            peer.head = operation.next
            operation.next = NULL
            if status != OK:
                self.give(operation)
                self.lost(peer, -status)
        while peer.waiting:
            request = <OfiSend> peer.waiting[0]
            if not request.complete and request.launch() != OK:
                return NO_ROOM
            if peer.waiting:                     # else the peer is lost
                peer.waiting.popleft()
        return OK

    cdef int push_all(self) except -1:
        cdef Operation *operation
        cdef Operation *more
        cdef Peer peer
        if self.stalled:
            stalled, self.stalled = self.stalled, []
            for peer in stalled:
                peer.stalled = False
                if self.push(peer) != OK and not peer.stalled:
                    peer.stalled = True
                    self.stalled.append(peer)
        if self.late != NULL:
            operation, self.late = self.late, NULL
            while operation != NULL:
                more = operation.next
                if operation.owner != NULL and (<OfiRecv> operation.owner).doom is not None:
                    taken = <OfiRecv> operation.owner
                    self.give(operation)
                    (<OfiRecv> taken).landed_piece(CANCELLED)
                elif self.late == NULL:
                    self.post_receive(operation, self.ignored(operation.kind))
                else:                            # no room for this one either
                    operation.next = self.late
                    self.late = operation
                operation = more
        while self.breaking_off and monotonic() >= self.breaking_off[0][0]:
            (<OfiRecv> self.breaking_off[0][1]).end()
        if self.matching == HERE and self.sweep == NULL:
            self.post_sweep()
        return 0

    def await_rest(self, OfiRecv request not None):
        """The provider has what can't be called back."""
        self.breaking_off.append((monotonic() + PATIENCE, request))

    def await_no_more(self, OfiRecv request not None):
        """The receive ends."""
        self.pulling.pop(request.number, None)
        self.breaking_off = [entry for entry in self.breaking_off if entry[1] is not request]

    # -- words ----------------------------------------------------------------------------------------------------

    cdef int word(self, Peer peer, uint32_t what, uint32_t rank, uint64_t first, uint64_t second=0, uint64_t third=0,
                  uint64_t fourth=0) except -1:
        cdef Operation *operation
        cdef Word said = Word(what, rank, [first, second, third, fourth])
        if peer.failed:
            return 0
        operation = self.take(OUT, peer)
        memcpy(operation.room, &said, sizeof(said))
        operation.length = sizeof(said)
        operation.tag = kind_tag(self.tag_bits, KIND_WORD)
        return self.post(peer, operation)

    def await_word(self):
        """One more receive of a word."""
        cdef Operation *operation = self.take(WORD_IN, None)
        operation.length = self.room
        operation.tag = kind_tag(self.tag_bits, KIND_WORD)
        self.post_receive(operation, self.ignored(WORD_IN))

    cdef int told(self, const Word *word) except -1:
        cdef uint64_t first = word.values[0]
        cdef int rank = <int> word.rank
        cdef OfiContext context
        cdef OfiSend request
        if word.what == PULL:
            request = self.announced.get(first)
            if request is not None:
                request.pull(word.values[1], word.values[2], word.values[3])
            return 0
        context = self.contexts.named.get(first)
        if word.what == ASK and context is None:
            self.contexts.early.setdefault(first, []).append(rank)
        elif context is None or not 0 <= rank < context.communicator.remote_size:
            return 0
        elif word.what == ASK:
            self.tell(context, rank)
        elif word.what == TELL and context.theirs[rank] == ASKED and word.values[1] < self.contexts.numbers:
            context.theirs[rank] = <uint32_t> word.values[1]
            peer = self.peer_of(context.communicator, rank)
            for request in context.waiting.pop(rank, ()):
                self.wait_in_line(peer, request)
            self.push(peer)
        return 0

    cdef int ask(self, OfiContext context, int rank, MtlSend request) except -1:
        """A peer's base; the send waits for it."""
        cdef Communicator comm = context.communicator
        context.waiting.setdefault(rank, deque()).append(request)
        if context.theirs[rank] == UNKNOWN:
            context.theirs[rank] = ASKED
            self.word(self.peer_of(comm, rank), ASK, comm.rank, comm.context)
        return 0

    def tell(self, OfiContext context not None, int rank):
        """Our base to a peer."""
        comm = context.communicator
        self.word(self.peer_of(comm, rank), TELL, comm.rank, comm.context, context.base)

    def add(self, Communicator comm not None):
        """Number a communicator's sources; peers that have asked already are told."""
        cdef OfiContext context = self.contexts.add(comm)
        for rank in self.contexts.early.pop(comm.context, ()):
            if 0 <= rank < comm.remote_size:
                self.tell(context, rank)
        return context

    def drop(self, OfiContext context not None):
        """Nobody receives on a communicator any more: what has come for it goes, and its senders are told that it was taken."""
        cdef Arrival arrival
        for arrival in context.arrived:
            if arrival.number:
                self.word(self.peer_of(context.communicator, arrival.source), PULL, 0, arrival.number)
        context.arrived = []
        self.contexts.drop(context)

    # -- what comes in --------------------------------------------------------------------------------------------

    cdef int post_receive(self, Operation *operation, uint64_t ignore) except -1:
        cdef int status = self.receive(operation, ignore)
        if status == NO_ROOM:
            operation.next = self.late
            self.late = operation
        elif status != OK:
            raise MPIError(ERR_OTHER, f"{self.provider} takes no receive: {self.library.explain(-status)}")
        return 0

    cdef uint64_t ignored(self, int kind) noexcept:
        return kind_tag(self.tag_bits, 1) - 1 if kind == WORD_IN else 0

    cpdef int progress(self) except -1:
        """Hand on what waits for room, and see to what has come; returns the number of events."""
        if self.ep == NULL:
            return 0
        self.push_all()
        self.read()
        return self.handle_all()

    cdef int handle_all(self) except -1:
        cdef Event event
        cdef int handled = 0
        while self.next_event(&event):
            handled += 1
            self.completed(&event)
        if handled:
            self.looks = LOOKS
        return handled

    cdef int completed(self, Event *event) except -1:
        cdef Operation *operation = event.operation
        cdef Word said
        if operation.kind == OUT:
            self.sending -= 1
            peer = <Peer> operation.owner
            self.give(operation)
            return self.lost(peer, event.error) if event.error else 0
        if operation.kind == BODY_OUT:
            self.sending -= 1
            sent = <OfiSend> operation.owner
            self.give(operation)
            return (<OfiSend> sent).went(event.error)
        if operation.kind == BODY_IN:
            taken = <OfiRecv> operation.owner
            self.give(operation)
            return (<OfiRecv> taken).landed_piece(event.error)
        if operation.kind == RECEIVE:
            return self.received(event)
        if operation.kind == SWEEP:
            return self.came(event)
        if event.error:
            self.give(operation)
            return 0
        memcpy(&said, operation.room, sizeof(said))
        self.post_receive(operation, self.ignored(WORD_IN))
        return self.told(&said) if event.length == sizeof(said) else 0

    cdef int received(self, Event *event) except -1:
        """The provider has matched a receive, or given it back."""
        cdef Operation *operation = event.operation
        cdef OfiRecv request = <OfiRecv> operation.owner
        request.operation = NULL
        self.there -= 1
        try:
            if event.error:
                return request.given_back(event.error)
            if not request.complete:
                self.hand_over(request, request.context, event.tag, operation.room, event.length)
        finally:
            self.give(operation)
        return 0

    cdef int hand_over(self, MtlRecv request, OfiContext context, uint64_t tag, const char *body, uint64_t length) except -1:
        cdef Announcement announced
        cdef int source = <int> (who_of(self.tag_bits, tag) - context.base)
        cdef Arrival arrival
        announced.number = 0
        announced.length = length
        if kind_of(self.tag_bits, tag) == KIND_ANNOUNCED:
            if length < sizeof(announced):
                return 0
            memcpy(&announced, body, sizeof(announced))
            body += sizeof(announced)
            if length != sizeof(announced) + announced.length:
                body = NULL
        if request is not None:
            return (<OfiRecv> request).take(source, tag_of(tag), announced.number, announced.length, body)
        self.unexpected += 1
        arrival = Arrival.__new__(Arrival)
        arrival.source = source
        arrival.tag = tag_of(tag)
        arrival.number = announced.number
        arrival.length = announced.length
        if body != NULL:
            arrival.body = <char *> malloc(announced.length + 1)
            if arrival.body == NULL:
                raise MemoryError(f"no memory for a message of {announced.length} bytes")
            memcpy(arrival.body, body, announced.length)
        context.arrived.append(arrival)
        return 0

    # -- matching here --------------------------------------------------------------------------------------------

    cdef int came(self, Event *event) except -1:
        """To the sweep: a message that nobody wanted there, or itself, called back."""
        cdef Operation *operation = event.operation
        cdef OfiContext context
        cdef OfiRecv request = None
        cdef Py_ssize_t place
        self.sweep = NULL
        if self.matching == LEAVING:
            self.matching = HERE if self.here else THERE
        try:
            if event.error:
                if self.matching == HERE and event.error == CANCELLED:
                    self.post_sweep()
                return 0
            self.swept += 1
            if self.matching == HERE:
                self.post_sweep()
            context = self.contexts.at(who_of(self.tag_bits, event.tag))
            if context is None:
                return 0                         # of a communicator that was freed
            place = context.wanting(<int> (who_of(self.tag_bits, event.tag) - context.base), tag_of(event.tag))
            if place >= 0:
                request = context.posted.pop(place)
                self.here -= 1
            self.hand_over(request, context, event.tag, operation.room, event.length)
        finally:
            self.give(operation)
        return 0

    cdef int match_here(self) except -1:
        self.matching = HERE
        return self.post_sweep() if self.sweep == NULL else 0

    cdef int match_there(self) except -1:
        cdef Operation *sweep = self.sweep
        if self.matching != HERE or self.here:
            return 0
        self.matching = THERE
        if sweep != NULL:
            if self.take_back(sweep):
                self.sweep = NULL
                self.give(sweep)
            else:
                self.matching = LEAVING
        return 0

    cdef int post_sweep(self) except -1:
        cdef Operation *operation = self.take(SWEEP, None)
        cdef int status
        operation.tag = 0
        operation.length = self.room
        status = self.receive(operation, kind_tag(self.tag_bits, 2) - 1)
        if status == OK:
            self.sweep = operation
            return 0
        self.give(operation)                     # later, in `push_all`
        if status != NO_ROOM:
            raise MPIError(ERR_OTHER, f"{self.provider} takes no receive: {self.library.explain(-status)}")
        return 0

    cdef int look(self) except -1:
        cdef uint64_t before
        self.match_here()
        while True:
            before = self.swept
            self.read()
            self.handle_all()
            if self.swept == before:
                return 0

    # -- trouble and the end --------------------------------------------------------------------------------------

    def call_back_pieces(self, OfiRecv request not None):
        """Of a message's body; what has been matched already comes, or breaks off."""
        cdef Operation *operations
        cdef int index
        for address, _ in self.slabs:
            operations = <Operation *> <size_t> address
            for index in range(SLAB):
                if operations[index].owner == <void *> request and operations[index].kind == BODY_IN \
                        and self.take_back(&operations[index]):
                    request.pieces -= 1
                    self.give(&operations[index])

    def owners(self, int kind):
        """Whose the operations of a kind are that the provider has."""
        cdef Operation *operations
        cdef int index
        found = []
        for address, _ in self.slabs:
            operations = <Operation *> <size_t> address
            for index in range(SLAB):
                if operations[index].owner != NULL and operations[index].kind == kind:
                    found.append(<object> operations[index].owner)
        return found

    def is_in_vain(self, OfiRecv request not None):
        """Nobody is left who could send what it wants."""
        return loss(request.context.communicator, request.wanted_source) is not None

    def fail_all(self, Proc proc not None):
        """Whatever involves a process ends with its failure."""
        cdef Peer peer = <Peer> proc.pml
        cdef OfiContext context
        cdef OfiSend sending
        cdef OfiRecv receiving
        cdef Operation *operation
        cdef int rank
        doomed = []
        if peer is not None:
            peer.failed = True
            while peer.head != NULL:
                operation = peer.head
                peer.head = operation.next
                if operation.kind == BODY_OUT:
                    doomed.append(<object> operation.owner)
                self.give(operation)
            doomed += peer.waiting
            peer.waiting.clear()
            doomed += [sending for sending in self.announced.values() if sending.target is peer]
            doomed += [receiving for receiving in self.pulling.values() if receiving.target is peer]
        doomed += [receiving for receiving in self.owners(RECEIVE) if self.is_in_vain(receiving)]
        for context in self.contexts.named.values():
            rank = context.communicator.remote_group.rank_of(proc.index)
            if rank >= 0:
                doomed += context.waiting.pop(rank, ())
                doomed += [receiving for receiving in context.posted if self.is_in_vain(receiving)]
        for request in doomed:
            if not request.complete:
                request.fail(proc.failure)

    def is_idle(self):
        """Nothing of ours is still with the provider or waits for it, but for what it can't bring to the lost."""
        cdef Peer peer
        cdef OfiSend request
        if self.stalled:
            return False
        return not self.sending or (all([peer.failed for peer in self.owners(OUT)])
                                    and all([request.target.failed for request in self.owners(BODY_OUT)]))
