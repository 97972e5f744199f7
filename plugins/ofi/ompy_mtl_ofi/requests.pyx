# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# cython: auto_pickle=False
"""A message's two ends; see `requests.pxd`."""
from libc.string cimport memcpy

from ompy.core.constants cimport ANY_SOURCE, ANY_TAG, MODE_SYNCHRONOUS, OK
from ompy.core.constants cimport OUT_OF_RESOURCE as NO_ROOM
from ompy.core.errors import ERR_OTHER, MPIError
from ompy.core.request cimport wait_uninterrupted
from ompy.mca.mtl cimport loss

from ompy_mtl_ofi.context cimport ASKED
from ompy_mtl_ofi.engine cimport BODY_IN, BODY_OUT, HERE, OUT, PULL, RECEIVE, THERE, Announcement
from ompy_mtl_ofi.fabric cimport CANCELLED
from ompy_mtl_ofi.tags cimport ANY_TAG_BITS, KIND_ANNOUNCED, MPI_BITS, body_tag, kind_tag, message_tag


cdef class OfiSend(MtlSend):
    cdef int submit(self) except -1:
        """Take a place in the order of messages to the peer."""
        cdef Peer peer = self.engine.peer_of(self.communicator, self.peer)
        self.context = <OfiContext> (<object> self.communicator).pml
        self.target = peer
        self.number = 0
        self.pulled = False
        self.pieces = 0
        if peer.failed:
            raise peer.proc.failure
        if self.context.theirs[self.peer] >= ASKED:
            return self.engine.ask(self.context, self.peer, self)
        if peer.waiting or self.launch() != OK:
            return self.engine.wait_in_line(peer, self)
        return 0

    cdef int launch(self) except -1:
        cdef Engine engine = self.engine
        cdef uint64_t tag = message_tag(self.context.theirs[self.peer] + self.context.communicator.rank, self.tag)
        cdef bint is_long = self.length > engine.eager_limit
        cdef Operation *operation
        cdef Announcement announced
        cdef int status
        if self.target.head != NULL:
            return NO_ROOM
        if not is_long and self.mode != MODE_SYNCHRONOUS:
            status = engine.eager(self.target, self.data, self.length, tag)
            if status == OK and not self.complete:
                self.finish()
            return status
        announced.number = self.number = engine.number()
        announced.length = self.length
        operation = engine.take(OUT, self.target)
        memcpy(operation.room, &announced, sizeof(announced))
        operation.length = sizeof(announced)
        if not is_long:
            memcpy(operation.room + sizeof(announced), self.data, self.length)
            operation.length += self.length
        operation.address = self.target.address
        operation.tag = tag | kind_tag(engine.tag_bits, KIND_ANNOUNCED)
        engine.announced[self.number] = self
        status = engine.send(operation)
        if status == OK:
            return OK
        engine.give(operation)
        if status == NO_ROOM:
            del engine.announced[self.number]
            return NO_ROOM
        engine.lost(self.target, -status)
        return OK

    cdef bint go_on_from_copy(self) except -1:
        """Not while pieces of the program's memory are with the provider."""
        if self.pieces:
            return False
        self.buffer = self.set_aside()
        return True

    cdef int pull(self, uint64_t receiver, uint64_t wanted, uint64_t piece) except -1:
        cdef Engine engine = self.engine
        cdef uint64_t offset = 0
        cdef Operation *operation
        if self.pulled or self.complete or wanted > self.length or (wanted and (piece == 0 or piece > engine.largest)):
            return 0
        self.pulled = True
        if wanted == 0:
            return self.over()
        self.pieces = (wanted + piece - 1) // piece
        while offset < wanted and not self.complete:
            operation = engine.take(BODY_OUT, self)
            operation.data = self.data + offset
            operation.length = min(piece, wanted - offset)
            operation.tag = body_tag(engine.tag_bits, receiver, offset // piece)
            engine.post(self.target, operation)
            offset += piece
        return 0

    cdef int went(self, int error) except -1:
        self.pieces -= 1
        if self.complete:
            return 0
        if error:
            return self.engine.lost(self.target, error)
        return self.over() if self.pieces == 0 else 0

    def over(self):
        """The receiver has what it wanted."""
        self.engine.announced.pop(self.number, None)
        return self.finish()

    cpdef int fail(self, object error) except -1:
        """Complete with an error."""
        self.engine.announced.pop(self.number, None)
        return MtlSend.fail(self, error)


cdef class OfiRecv(MtlRecv):
    cdef int post(self) except -1:
        """Take the oldest message of those that were kept, or stand in a queue: the provider's, or ours."""
        cdef Engine engine = self.engine
        cdef OfiContext context = <OfiContext> (<object> self.communicator).pml
        cdef Py_ssize_t place
        cdef Arrival arrival
        cdef uint64_t ignore
        cdef int status
        self.context = context
        self.doom = None
        self.pieces = 0
        self.direct = False
        if context.arrived:
            place = context.find(self.wanted_source, self.wanted_tag)
            if place >= 0:
                arrival = <Arrival> context.arrived.pop(place)
                return self.take(arrival.source, arrival.tag, arrival.number, arrival.length, arrival.body)
        failure = loss(context.communicator, self.wanted_source)
        if failure is not None:
            return self.fail(failure)
        if engine.matching == HERE:
            engine.match_there()
        if engine.matching == THERE:
            if engine.there < engine.most:
                self.operation = engine.take(RECEIVE, self)
                self.operation.length = engine.room
                self.operation.tag = message_tag(context.base + (0 if self.wanted_source == ANY_SOURCE else self.wanted_source),
                                                 0 if self.wanted_tag == ANY_TAG else self.wanted_tag)
                ignore = kind_tag(engine.tag_bits, KIND_ANNOUNCED)
                if self.wanted_source == ANY_SOURCE:
                    ignore |= ((<uint64_t> 1 << context.bits) - 1) << MPI_BITS
                if self.wanted_tag == ANY_TAG:
                    ignore |= ANY_TAG_BITS
                status = engine.receive(self.operation, ignore)
                if status == OK:
                    engine.there += 1
                    return 0
                self.leave_queue()
                if status != NO_ROOM:
                    return self.given_back(-status)
            engine.match_here()
        context.posted.append(self)
        engine.here += 1
        return 0

    def leave_queue(self):
        """Let go of the operation in the provider's queue."""
        cdef Operation *operation = self.operation
        self.operation = NULL
        self.engine.give(operation)

    def leave_ours(self):
        """Out of the receives that are matched here; whether it was among them."""
        cdef Py_ssize_t place
        for place in range(len(self.context.posted)):
            if self.context.posted[place] is self:
                del self.context.posted[place]
                self.engine.here -= 1
                return True
        return False

    cdef bint withdraw(self) except -1:
        """Out of either queue, if nothing has come yet."""
        if self.operation == NULL:
            return self.leave_ours()
        if not self.engine.take_back(self.operation):
            return False                         # it was matched; or else `given_back` ends it
        self.engine.there -= 1
        self.leave_queue()
        return True

    cdef int given_back(self, int error) except -1:
        """Out of the provider's queue, without a message."""
        if self.complete:
            return 0
        if self.doom is not None:
            return self.fail(self.doom)
        if error == CANCELLED:
            self.status.cancelled = True
            return self.finish()
        return self.fail(MPIError(ERR_OTHER, f"mtl ofi ({self.engine.provider}) could not receive: "
                                             f"{self.engine.library.explain(error)}"))

    # -- a message ------------------------------------------------------------------------------------------------

    cdef int take(self, int source, int tag, uint64_t number, uint64_t length, const char *body) except -1:
        if body == NULL:
            return self.fetch(source, tag, number, length)
        if number:
            self.engine.word(self.engine.peer_of(self.context.communicator, source), PULL, 0, number)
        return self.copied(source, tag, body, length)

    cdef int fetch(self, int source, int tag, uint64_t number, uint64_t length) except -1:
        """Have the sender send what is wanted of it, in pieces, for each of which there is a receive before."""
        cdef Engine engine = self.engine
        cdef char *place = self.landing(source, tag, length)
        cdef uint64_t offset = 0
        cdef Operation *operation
        self.target = engine.peer_of(self.context.communicator, source)
        if self.wanted == 0 or self.abandoned:
            engine.word(self.target, PULL, 0, number)
            return self.landed()
        if self.target.failed:
            return self.fail(self.target.proc.failure)
        engine.pulled += 1
        self.pieces = (self.wanted + engine.piece - 1) // engine.piece
        self.number = engine.number(self.pieces)
        self.direct = self.convertor is None and self.allocate is None
        engine.pulling[self.number] = self
        while offset < self.wanted:
            operation = engine.take(BODY_IN, self)
            operation.data = place + offset
            operation.length = min(engine.piece, self.wanted - offset)
            operation.tag = body_tag(engine.tag_bits, self.number, offset // engine.piece)
            engine.post_receive(operation, 0)
            offset += engine.piece
        return engine.word(self.target, PULL, 0, number, self.number, self.wanted, engine.piece)

    cdef int landed_piece(self, int error) except -1:
        self.pieces -= 1
        if self.complete:
            return 0
        if error and self.doom is None:
            self.engine.lost(self.target, error)
            return self.fail(MPIError(ERR_OTHER, f"a message of rank {self.status.source} broke off: "
                                                 f"{self.engine.library.explain(error)}"))
        if self.pieces:
            return 0
        if self.doom is not None:
            return self.end()
        del self.engine.pulling[self.number]
        return self.landed()

    cpdef int abandon(self, object memory) except -1:
        """Take it back, or have the message dropped; a body that is on its way into the program's memory is waited for."""
        MtlRecv.abandon(self, memory)
        if not self.complete and self.direct:
            wait_uninterrupted(self)
        return 0

    cpdef int fail(self, object error) except -1:
        """Complete with an error, as soon as nothing is put into our memory any more."""
        if self.complete:
            return 0
        if self.doom is not None and self.pieces:
            return 0                             # its end is near
        self.doom = error
        if self.operation != NULL:
            if not self.withdraw():
                return 0                         # its end is in the queue of events already, or will be
        else:
            self.leave_ours()
        if self.pieces:
            self.engine.call_back_pieces(self)
        if self.pieces:
            self.engine.await_rest(self)         # written to until each has come, or has broken off
            return 0
        return self.end()

    cdef int end(self) except -1:
        self.engine.await_no_more(self)
        return MtlRecv.fail(self, self.doom)
