# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-falign-jumps -falign-labels
"""The receiver's half of ob1's protocols."""
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy, memset

from ompy.core.checksum cimport crc32c
from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.errors import ERR_INTERN, ERR_NO_MEM, ERR_OTHER, ERR_RMA_RANGE, MPIError
from ompy.core.owner cimport enter, leave
from ompy.core.request cimport wait_uninterrupted
from ompy.core.trace cimport (
    EVENT_FRAGMENT, EVENT_MATCHED, EVENT_POSTED, WAY_READ, WAY_SEND, WAY_WRITE, is_tracing, record,
)
from ompy.mca.bml cimport Route
from ompy.mca.btl cimport FLAG_GET, FLAG_PUT, Btl, Descriptor

from ompy_pml_ob1.engine cimport route_name, route_with
from ompy_pml_ob1.header cimport (
    FLAG_CAN_PUT, HANDLE_LIMIT, KIND_ACK, KIND_FIN, KIND_MATCH, KIND_PUT, KIND_RGET, PACKET_SIZE, AckHeader,
    Envelope, PutHeader, message_length,
)
from ompy_pml_ob1.matching cimport MOST_UNUSED, free_message, message_bytes

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(object)


cdef RecvRequest unused_recv(Engine engine, Matching matching):
    cdef RecvRequest request
    if matching.unused_count == 0:
        request = RecvRequest.__new__(RecvRequest)
        request.engine = engine
        request.matching = matching
        request.communicator = matching.communicator
        return request
    matching.unused_count -= 1
    request = <RecvRequest> matching.unused[matching.unused_count]
    Py_DECREF(request)
    return request


cdef class RecvRequest(Transfer):
    cpdef int start(self) except -1:
        """Take the oldest message that matches, or wait for one."""
        enter()
        try:
            return self.look_for_message()
        finally:
            leave()

    cdef int look_for_message(self) except -1:
        cdef Unexpected *message
        self.begin()
        self.peer = self.wanted_source
        self.tag = self.wanted_tag
        if is_tracing():
            self.trace(EVENT_POSTED, 0, 0, self.nbytes)
        message = self.matching.find(self.wanted_source, self.wanted_tag)
        if message == NULL:
            if self.matching.failures is not None and self.wanted_source in self.matching.failures:
                return self.fail(self.matching.failures[self.wanted_source])
            self.matching.post(&self.posted, self, self.wanted_source, self.wanted_tag)
            return 0
        self.matching.remove(message)
        try:
            self.take_message(message_bytes(message), message.length)
        finally:
            free_message(message)
        return 0

    cpdef int cancel(self) except -1:
        """Takes effect as long as nothing was matched (MPI-4.1, 3.8.4)."""
        enter()
        try:
            if self.posted.queue != NULL:
                self.status.cancelled = True
                self.matching.withdraw(&self.posted)
                self.finish()
        finally:
            leave()
        return 0

    cpdef int release(self) except -1:
        """Kept to be used again, when the caller's is the only reference."""
        cdef Matching matching = self.matching
        if not self.complete:
            return 0
        if self.error is not None or self.persistent or Py_REFCNT(self) != 1 or matching.unused_count == MOST_UNUSED \
                or matching.closed:
            return Transfer.release(self)
        self.reset()
        Py_INCREF(self)
        matching.unused[matching.unused_count] = <PyObject *> self
        matching.unused_count += 1
        return 0

    cdef int reset(self) except -1:
        self.typemap = None
        if self.allocate is not None:
            self.allocate = None
        if self.routes is not None:
            self.routes = self.pieces = self.writer = None
        if self.convertor is not None:
            self.convertor = None
        return Transfer.reset(self)

    cpdef int abandon(self, object memory) except -1:
        """What still comes is thrown away, and the memory is the program's.

        Where the transport was asked to write there, or the sender, and can't be called back, that is waited for.
        """
        enter()
        try:
            if self.complete or self.posted.queue != NULL:
                return Transfer.abandon(self, memory)
            if self.putting and self.writer.btl.withdraw(self.writer.endpoint, self.address, self.wanted):
                # Pieces that it was asked for it sends as fragments then.
                self.withdrawn = True
                self.engine.withdrawn.append((self.address, self.wanted))
            self.abandoned = self.withdrawn or not self.putting
            self.convertor = None
            if self.getting:
                self.next_get = self.received = self.wanted
                self.advance()
        finally:
            leave()
        if (self.putting or self.under_way) and not self.withdrawn:
            wait_uninterrupted(self)
        return 0

    cdef int finish(self) except -1:
        if self.withdrawn:
            self.withdrawn = False
            self.writer.btl.restore(self.writer.endpoint, self.address, self.wanted)
            self.engine.withdrawn.remove((self.address, self.wanted))
        if self.number:
            self.engine.unregister_transfer(self)
        self.sender = 0
        self.last_word = None
        return Transfer.finish(self)

    cdef int finish_after(self, Transfer header) except -1:
        if header is None:
            return self.finish()
        self.last_word = header
        return 0

    cdef int header_left(self, Transfer header, object error) except -1:
        return self.finish() if header is self.last_word else Transfer.header_left(self, header, error)

    cpdef int fail(self, object error) except -1:
        """Complete with an error, of which a living sender that waits for us is told; whatever still arrives is thrown away.

        With nothing left to arrive there is no error.
        """
        cdef uint64_t sender = 0 if self.complete else self.sender
        if self.last_word is not None:
            return self.finish()
        if self.posted.queue != NULL:
            self.matching.withdraw(&self.posted)
            return Transfer.fail(self, error)
        self.release_pieces()
        self.getting = self.putting = self.owes_answer = False
        Transfer.fail(self, error)
        if sender and self.routes.proc.failure is None:
            self.report(sender, self.status.error)
        return 0

    cdef void trace(self, int event, int way, uint32_t sequence, uint64_t nbytes) noexcept:
        cdef Communicator comm = self.matching.communicator
        record(event, way, <void *> self, comm.context, self.peer, comm.rank, self.tag, sequence, nbytes, 0)

    # -- the match ------------------------------------------------------------------------------------------------

    cdef int take_message(self, const char *data, size_t length) except -1:
        cdef const Envelope *envelope = <const Envelope *> data
        if is_tracing():
            self.peer = envelope.source
            self.tag = envelope.tag
            self.trace(EVENT_MATCHED, 0, envelope.sequence, message_length(data, length))
        if envelope.kind == KIND_MATCH:
            self.take_whole(envelope.source, envelope.tag, data + sizeof(Envelope), length - sizeof(Envelope))
            return self.finish()
        try:
            return self.take_announced(envelope, data, length)
        except Exception as error:               # the sender may have gone meanwhile
            if self.complete:
                raise
            return self.fail(error)

    cdef int take_announced(self, const Envelope *envelope, const char *data, size_t length) except -1:
        self.routes = self.engine.contact(self.matching, envelope.source)
        self.sender = (<const RendezvousHeader *> data).sender
        self.open(envelope.source, envelope.tag, (<const RendezvousHeader *> data).length)
        if envelope.kind == KIND_RGET:
            return self.take_get(<const GetHeader *> data)
        return self.take_rendezvous(<const RendezvousHeader *> data, data + sizeof(RendezvousHeader),
                                    length - sizeof(RendezvousHeader))

    # -- rendezvous -----------------------------------------------------------------------------------------------

    cdef int take_rendezvous(self, const RendezvousHeader *header, const char *payload, size_t length) except -1:
        cdef Route writer = None
        cdef uint64_t rest, limit
        cdef Transfer answer = None
        self.place(0, payload, length)
        rest = self.wanted - self.received
        limit = self.wanted
        if rest and header.envelope.flags & FLAG_CAN_PUT and self.convertor is None and self.engine.use_put:
            writer = route_with(self.routes, FLAG_PUT)
            if writer is not None and (rest < writer.btl.min_rdma_pipeline_size or self.overlaps_withdrawn()):
                writer = None
        if rest:
            self.engine.register_transfer(self)
        if writer is not None:
            # The first bytes come as fragments while memory is made ready for the puts.
            limit = self.received + min(rest, <uint64_t> writer.btl.rdma_pipeline_send_length)
        self.owes_answer = writer is not None and limit == self.received
        if not self.owes_answer:
            answer = self.acknowledge(limit)
        if rest == 0:
            return self.finish_after(answer)
        if writer is not None:
            self.next_get = limit
            self.putting = True
            self.writer = writer
            self.pieces = {}
            self.advance()
        return 0

    cdef bint overlaps_withdrawn(self) except -1:
        """Whether puts to this memory would be dropped, since an earlier receive's were called back."""
        for address, size in self.engine.withdrawn:
            if self.address < address + size and address < self.address + self.wanted:
                return True
        return False

    cdef Transfer acknowledge(self, uint64_t limit):
        cdef AckHeader header
        memset(&header, 0, sizeof(header))
        header.kind = KIND_ACK
        header.sender = self.sender
        header.receiver = self.number
        header.limit = limit
        header.total = self.wanted
        return self.engine.control(self, <char *> &header, sizeof(header))

    cdef int take_fragment(self, uint64_t offset, const char *data, size_t length) except -1:
        if self.complete:
            return 0
        if is_tracing():
            self.trace(EVENT_FRAGMENT, WAY_SEND, 0, length)
        self.place(offset, data, length)
        return self.finish_if_done()

    cdef int finish_if_done(self) except -1:
        if self.received >= self.wanted and self.under_way == 0 and not self.complete:
            self.getting = self.putting = False
            self.finish()
        return 0

    # -- reading the sender's memory ------------------------------------------------------------------------------

    cdef int take_get(self, const GetHeader *header) except -1:
        if self.wanted == 0:
            return self.finish_after(self.report(self.sender, 0))
        self.engine.register_transfer(self)
        if self.convertor is not None or self.abandoned or not self.engine.use_get \
                or route_with(self.routes, FLAG_GET) is None \
                or (self.engine.checksum and self.wanted < header.rendezvous.length):
            self.acknowledge(self.wanted)
            return 0
        self.remote_address = header.address
        self.checksum = header.checksum
        self.remote_handle = (<const char *> header + sizeof(GetHeader))[:header.handle_length]
        self.next_get = 0
        self.getting = True
        return self.advance()

    cdef int push(self) except -1:
        cdef int result = OK
        if self.complete or self.pushing:
            return OK
        self.pushing = True
        try:
            if self.getting:
                result = self.read()
            elif self.putting:
                result = self.ask_for_puts()
        finally:
            self.pushing = False
        if self.getting and self.next_get >= self.wanted and self.under_way == 0 and not self.complete:
            self.end_read()
        elif self.putting:
            self.finish_if_done()
        return OK if self.complete else result

    cdef int end_read(self) except -1:
        """All that was begun is over."""
        if self.received < self.wanted:
            return self.read_otherwise()
        self.getting = False
        if self.engine.checksum and not self.abandoned and crc32c(0, <char *> self.address, self.wanted) != self.checksum:
            return self.fail_damaged()
        return self.finish_after(self.report(self.sender, 0))

    cdef int fail_damaged(self) except -1:
        """What remote memory access moved is not what the sender has."""
        return self.fail(MPIError(ERR_OTHER, f"the message of {self.wanted} bytes from rank {self.peer} with tag {self.tag} "
                                             f"came damaged"))

    cdef int read(self) except -1:
        cdef Route route = route_with(self.routes, FLAG_GET)
        cdef Descriptor descriptor
        cdef uint64_t size
        if route is None:
            self.read_otherwise()
            return OK
        while self.getting and self.next_get < self.wanted and self.under_way < self.engine.rdma_pipeline_depth:
            size = self.wanted - self.next_get
            if route.btl.get_limit and size > route.btl.get_limit:
                size = route.btl.get_limit
            try:
                descriptor = route.btl.prepare_dst(route.endpoint, self.address + self.next_get, size)
                if descriptor is None or self.read_part(route, descriptor, size) != OK:
                    return OUT_OF_RESOURCE
            except MPIError as error:
                if error.code != ERR_NO_MEM:
                    raise
                # No more can be registered now.  One that is under way makes room for the next; fragments need none.
                if self.under_way == 0:
                    self.next_get = self.wanted
                return OK
        return OK

    cdef int read_part(self, Route route, Descriptor descriptor, uint64_t size) except -1:
        cdef int taken = OUT_OF_RESOURCE
        descriptor.remote_address = self.remote_address + self.next_get
        descriptor.remote_handle = self.remote_handle
        descriptor.callback = part_read
        descriptor.context = self
        descriptor.in_flight = True
        # Counted before the call, which may complete it.
        self.under_way += 1
        self.next_get += size
        try:
            taken = route.btl.get(route.endpoint, descriptor)
        finally:
            if taken != OK:
                self.under_way -= 1
                self.next_get -= size
                descriptor.in_flight = False
                if descriptor.local_handle is not None:
                    route.btl.release_mem(descriptor.local_handle)
        return taken

    cdef int read_otherwise(self) except -1:
        """Reading failed: have everything sent as fragments."""
        if self.getting and self.under_way == 0:
            self.getting = False
            self.received = 0
            self.acknowledge(self.wanted)
        return 0

    cdef Transfer report(self, uint64_t sender, int error):
        """The sender's memory is not looked at any more."""
        cdef FinHeader header
        memset(&header, 0, sizeof(header))
        header.kind = KIND_FIN
        header.error = error
        header.request = sender
        header.size = self.wanted
        return self.engine.control(self, <char *> &header, sizeof(header))

    # -- having the sender write ----------------------------------------------------------------------------------

    cdef int ask_for_puts(self) except -1:
        cdef char packet[PACKET_SIZE]
        cdef PutHeader *header = <PutHeader *> packet
        cdef Route route = self.writer
        cdef Descriptor descriptor
        cdef uint64_t size
        cdef size_t handle_length, address
        cdef bytes handle, name
        while self.next_get < self.wanted and self.under_way < self.engine.rdma_pipeline_depth:
            size = min(self.wanted - self.next_get, <uint64_t> route.btl.rdma_pipeline_frag_size)
            if route.btl.put_limit and size > route.btl.put_limit:
                size = route.btl.put_limit
            try:
                descriptor = route.btl.prepare_dst(route.endpoint, self.address + self.next_get, size)
            except MPIError as error:
                if error.code != ERR_NO_MEM:
                    raise
                if self.under_way:
                    return OK                    # one of those makes room for the next
                # A route that the sender does not find: it sends the piece as fragments.
                name, handle, address = b"", None, self.address + self.next_get
            else:
                if descriptor is None:
                    return OUT_OF_RESOURCE
                name, handle, address = route_name(route), descriptor.local_handle, descriptor.local_address
            handle_length = 0 if handle is None else len(handle)
            if handle_length > HANDLE_LIMIT:
                raise MPIError(ERR_INTERN, f"btl {route.btl.name}: registration handles may have {HANDLE_LIMIT} bytes, "
                                           f"not {handle_length}")
            memset(packet, 0, sizeof(PutHeader))
            header.kind = KIND_PUT
            header.sender = self.sender
            header.receiver = self.number
            header.offset = self.next_get
            header.size = size
            header.address = address
            header.piece = self.next_piece
            if self.owes_answer:
                header.total = self.wanted
                self.owes_answer = False
            header.handle_length = handle_length
            memcpy(header.route, <const char *> name, len(name))
            if handle_length:
                memcpy(packet + sizeof(PutHeader), <const char *> handle, handle_length)
            self.pieces[self.next_piece] = (route.btl, handle, address, size)
            self.next_piece += 1
            self.next_get += size
            self.under_way += 1
            self.engine.control(self, packet, sizeof(PutHeader) + handle_length)
        return OK

    cdef int piece_done(self, const FinHeader *header) except -1:
        """The sender has written one piece, or (size 0) will send it as fragments, or sends no more."""
        cdef Btl btl
        cdef size_t address
        if header.error and not self.complete:
            self.sender = 0
            return self.fail(MPIError(header.error, f"rank {self.peer} could not send the rest of the message of "
                                                    f"{self.wanted} bytes with tag {self.tag}"))
        if self.complete or header.piece not in self.pieces:
            return 0
        btl, handle, address, size = self.pieces.pop(header.piece)
        if handle is not None:
            btl.release_mem(handle)
        self.under_way -= 1
        if header.size and self.engine.checksum and not self.abandoned \
                and crc32c(0, <char *> address, size) != header.checksum:
            return self.fail_damaged()
        self.received += header.size
        if is_tracing():
            self.trace(EVENT_FRAGMENT, WAY_WRITE, 0, header.size)
        return self.advance()

    cdef int release_pieces(self) except -1:
        cdef Btl btl
        while self.pieces:
            _, (btl, handle, _, _) = self.pieces.popitem()
            if handle is not None:
                btl.release_mem(handle)
        self.under_way = 0
        return 0


cdef int part_read(object context, Descriptor descriptor, int status) except -1:
    cdef RecvRequest request = <RecvRequest> context
    request.under_way -= 1
    if descriptor.local_handle is not None:
        descriptor.btl.release_mem(descriptor.local_handle)
    if request.complete:
        return 0
    if status:
        if status != ERR_RMA_RANGE:
            # This peer's memory can't be read after all: no later message shall try, by another route neither, since the peer
            # goes on to offer what it has registered for this one.
            request.routes.rdma[:] = [route for route in request.routes.rdma if not (<Route> route).btl.flags & FLAG_GET]
        request.next_get = request.wanted        # those under way are waited for, none is begun
    else:
        request.received += descriptor.size
        if is_tracing():
            request.trace(EVENT_FRAGMENT, WAY_READ, 0, descriptor.size)
    return 0 if request.pushing else request.advance()
