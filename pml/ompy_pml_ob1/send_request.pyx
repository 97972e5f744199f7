# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-falign-jumps -falign-labels
"""The sender's half of ob1's protocols; pictured in `send_request.pxd`."""
from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memcpy, memset

from ompy.core.checksum cimport crc32c
from ompy.core.constants cimport MODE_SYNCHRONOUS, OK, OUT_OF_RESOURCE
from ompy.core.convertor cimport Convertor
from ompy.core.errors import ERR_INTERN, ERR_NO_MEM, MPIError
from ompy.core.owner cimport enter, leave
from ompy.core.request cimport wait_uninterrupted
from ompy.core.trace cimport (
    EVENT_ANNOUNCED, EVENT_FRAGMENT, EVENT_STARTED, WAY_EAGER, WAY_READ, WAY_RENDEZVOUS, WAY_SEND, WAY_WRITE, is_tracing,
    record,
)
from ompy.mca.bml cimport Route
from ompy.mca.btl cimport FLAG_GET, FLAG_NEEDS_REGISTRATION, FLAG_PUT, TAG_PML, Descriptor

from ompy_pml_ob1.engine cimport route_name, route_with
from ompy_pml_ob1.header cimport (
    FLAG_CAN_PUT, HANDLE_LIMIT, KIND_FIN, KIND_FRAG, KIND_MATCH, KIND_RGET, KIND_RNDV, PACKET_SIZE, ROUTE_NAME,
    FragmentHeader, GetHeader, RendezvousHeader,
)

cdef enum:
    # What is packed goes in at least so many parts, as the receiver unpacks one while the next is packed; none is shorter than
    # that, bytes.
    PACKED_PARTS = 4
    SHORTEST_PACKED = 16384


cdef class SendRequest(Transfer):
    cdef int prepare(self, Engine engine, Matching matching, size_t address, Py_ssize_t count, Typemap typemap,
                     int dest, int tag, int mode) except -1:
        self.engine = engine
        self.matching = matching
        self.communicator = matching.communicator
        self.place = -1
        self.address = address
        self.count = count
        self.typemap = typemap
        self.peer = dest
        self.tag = tag
        self.mode = mode
        self.length = <uint64_t> (count * typemap.size)
        self.nbytes = self.length
        if not typemap.contiguous and self.length:
            self.convertor = Convertor.__new__(Convertor)
        return 0

    cpdef int start(self) except -1:
        """Take a place in the order of messages to the peer, and send what may be sent before a match."""
        enter()
        try:
            return self.take_place()
        finally:
            leave()

    cdef int take_place(self) except -1:
        self.routes = self.engine.contact(self.matching, self.peer)
        self.begin()
        self.announced = self.done = 0
        self.total = self.length
        self.receiver = 0
        self.stage = STAGE_ANNOUNCE
        self.shares = None
        self.puts = None
        if self.convertor is not None:
            self.convertor.prepare(<char *> self.address, self.count, self.typemap)
        self.envelope.flags = 0
        if self.place < 0:
            self.place = self.matching.peers[self.peer].next_sequence
            self.matching.peers[self.peer].next_sequence += 1
        self.envelope.sequence = <uint32_t> self.place
        self.place = -1
        self.envelope.source = self.matching.communicator.rank
        self.envelope.tag = self.tag
        self.envelope.spare = 0
        self.envelope.context = self.matching.communicator.context
        if is_tracing():
            self.trace(EVENT_STARTED, 0, self.length)
        try:
            if self.engine.holds_back(self.routes) or self.push() == OUT_OF_RESOURCE:
                self.engine.retry(self)
        except Exception as error:
            self.fail(error)
        return 0

    cdef bint is_behind(self, Matching matching, int peer, uint32_t sequence) noexcept:
        return (self.stage == STAGE_ANNOUNCE and not self.complete and self.matching is matching and self.peer == peer
                and <int32_t> (self.envelope.sequence - sequence) > 0)

    cdef int move_up(self) except -1:
        self.envelope.sequence = <uint32_t> (self.envelope.sequence - 1)
        return 0

    cpdef int abandon(self, object memory) except -1:
        """The message goes on from a copy, unless the peer may be reading it where it is and the BTL can't call it back."""
        cdef bint is_read, is_used
        cdef bint is_written = False             # by puts under way, which read what is there when their turn comes
        enter()
        try:
            if self.complete:
                return self.release()
            self.abandoned = True
            if self.reader is not None and self.stage == STAGE_ANNOUNCE:
                self.end_reading()               # it was not announced after all
            is_read = self.reader is not None and self.stage == STAGE_WAIT
            if is_read and self.reader.btl.withdraw(self.reader.endpoint, self.address, self.length):
                self.withdrawn = self.address
                is_read = False
            is_used = is_read or self.under_way > 0
            if is_used:
                # Descriptors, or the peer, look at the program's memory.
                is_written = self.puts is not None and self.under_way > 0
                self.buffer = memory if self.buffer is None else (self.buffer, memory)
            if not is_read:
                copy = self.set_aside()
                self.buffer = (self.buffer, copy) if is_used else copy
        finally:
            leave()
        if is_used and (memory is None or is_written):
            wait_uninterrupted(self)
        return 0

    cdef void trace(self, int event, int way, uint64_t nbytes) noexcept:
        record(event, way, <void *> self, self.envelope.context, self.envelope.source, self.peer, self.tag,
               self.envelope.sequence, nbytes, 0)

    cdef int push(self) except -1:
        if self.complete:
            return OK
        if self.stage == STAGE_ANNOUNCE:
            return self.announce()
        if self.stage == STAGE_STREAM:
            return self.stream()
        return OK

    cdef int finish(self) except -1:
        if self.number:
            self.engine.unregister_transfer(self)
        if self.reader is not None:
            self.end_reading()
        return Transfer.finish(self)

    # -- announcing -----------------------------------------------------------------------------------------------

    cdef int announce(self) except -1:
        cdef Route route = self.routes.eager_route()
        cdef bint fits = self.length + sizeof(Envelope) <= route.btl.eager_limit
        cdef Route reader = None
        if self.convertor is None and (not fits or self.length >= route.btl.min_rdma_pipeline_size):
            reader = self.reading_route()
        if reader is None and fits and self.mode != MODE_SYNCHRONOUS:
            self.envelope.kind = KIND_MATCH
            if self.send_first(route, <char *> &self.envelope, sizeof(Envelope), self.length) != OK:
                return OUT_OF_RESOURCE
            if is_tracing():
                self.trace(EVENT_ANNOUNCED, WAY_EAGER, self.length)
            self.finish()
            return OK
        if self.number == 0:
            self.engine.register_transfer(self)
        return self.announce_rendezvous(route) if reader is None else self.announce_get(route, reader)

    cdef Route reading_route(self):
        """By which the receiver may read the message where it is, or None."""
        cdef Route route = route_with(self.routes, FLAG_GET) if self.engine.use_get else None
        if route is not None and route.btl.exposes(route.endpoint, self.address, self.length):
            return route
        return None

    cdef int announce_rendezvous(self, Route route) except -1:
        cdef RendezvousHeader header
        cdef uint64_t first = self.length
        cdef int taken
        if first + sizeof(header) > route.btl.eager_limit:
            first = min(<uint64_t> route.btl.rndv_eager_limit, <uint64_t> (route.btl.eager_limit - sizeof(header)))
            first = min(first, self.length)
        header.envelope = self.envelope
        header.envelope.kind = KIND_RNDV
        if self.convertor is None and self.engine.use_put and route_with(self.routes, FLAG_PUT) is not None:
            header.envelope.flags |= FLAG_CAN_PUT
        header.length = self.length
        header.sender = self.number
        # Set before the send: a BTL may bring the answer before it returns.
        self.announced = self.done = first
        self.stage = STAGE_WAIT
        try:
            taken = self.send_first(route, <char *> &header, sizeof(header), first)
        except BaseException:
            self.stage = STAGE_ANNOUNCE
            raise
        if taken != OK:
            self.stage = STAGE_ANNOUNCE
            return OUT_OF_RESOURCE
        if is_tracing():
            self.trace(EVENT_ANNOUNCED, WAY_RENDEZVOUS, first)
        return OK

    cdef int announce_get(self, Route route, Route reader) except -1:
        cdef char packet[PACKET_SIZE]
        cdef GetHeader *header = <GetHeader *> packet
        cdef size_t handle_length
        cdef int taken
        if self.get_handle is None and reader.btl.flags & FLAG_NEEDS_REGISTRATION:
            try:
                self.get_handle = reader.btl.hold_mem(reader.endpoint, self.address, self.length)
            except MPIError as error:
                if error.code != ERR_NO_MEM:
                    raise
                return self.announce_rendezvous(route)
        self.reader = reader
        handle_length = 0 if self.get_handle is None else len(self.get_handle)
        if handle_length > HANDLE_LIMIT:
            raise MPIError(ERR_INTERN, f"btl {reader.btl.name}: registration handles may have {HANDLE_LIMIT} bytes, "
                                       f"not {handle_length}")
        header.rendezvous.envelope = self.envelope
        header.rendezvous.envelope.kind = KIND_RGET
        header.rendezvous.length = self.length
        header.rendezvous.sender = self.number
        header.address = self.address
        header.checksum = crc32c(0, <char *> self.address, self.length) if self.engine.checksum else 0
        header.handle_length = handle_length
        if handle_length:
            memcpy(packet + sizeof(GetHeader), <const char *> self.get_handle, handle_length)
        # A rendezvous that was not taken, for want of a registration, may have gone before.
        self.announced = self.done = 0
        self.stage = STAGE_WAIT
        try:
            taken = route.btl.sendi(route.endpoint, packet, sizeof(GetHeader) + handle_length, NULL, 0, TAG_PML)
        except BaseException:
            self.stage = STAGE_ANNOUNCE
            raise
        if taken != OK:
            self.stage = STAGE_ANNOUNCE
            return OUT_OF_RESOURCE
        if is_tracing():
            self.trace(EVENT_ANNOUNCED, WAY_READ, 0)
        return OK

    cdef int end_reading(self) except -1:
        """The peer reads this memory no more."""
        if self.get_handle is not None:
            self.reader.btl.release_mem(self.get_handle)
            self.get_handle = None
        if self.withdrawn:
            self.reader.btl.restore(self.reader.endpoint, self.withdrawn, self.length)
            self.withdrawn = 0
        self.reader = None
        return 0

    cdef int send_first(self, Route route, char *header, size_t header_size, uint64_t payload) except -1:
        """Header and the message's first `payload` bytes, at once."""
        cdef char *packed
        if payload == 0:
            return route.btl.sendi(route.endpoint, header, header_size, NULL, 0, TAG_PML)
        if self.convertor is None:
            return route.btl.sendi(route.endpoint, header, header_size, <char *> self.address, payload, TAG_PML)
        packed = self.engine.take_scratch(payload)
        try:
            self.convertor.seek(0)
            self.convertor.pack(packed, payload)
            return route.btl.sendi(route.endpoint, header, header_size, packed, payload, TAG_PML)
        finally:
            self.engine.return_scratch(packed)

    # -- after the match ------------------------------------------------------------------------------------------

    cdef int acknowledged(self, const AckHeader *header) except -1:
        """The receiver has matched and says how much to send."""
        self.receiver = header.receiver
        self.total = header.total
        self.stage = STAGE_STREAM
        self.shares = self.share_out(self.announced, header.limit)
        return self.advance()

    cdef list share_out(self, uint64_t begin, uint64_t end):
        """Cut a stretch of the message into one part a route, by bandwidth."""
        cdef Route route
        cdef uint64_t part, offset = begin
        cdef list shares = []
        cdef Py_ssize_t left = len(self.routes.send)
        if end <= begin:
            return shares
        for route in self.routes.send:
            left -= 1
            part = <uint64_t> ((end - begin) * route.weight)
            if left == 0 or offset + part > end:
                part = end - offset
            if part:
                shares.append([route, offset, offset + part])
                offset += part
        return shares

    cdef int stream(self) except -1:
        cdef int result = OK
        cdef list share
        if self.pushing:
            return OK
        self.pushing = True
        try:
            while self.puts:
                if self.put(self.puts[0]) != OK:
                    result = OUT_OF_RESOURCE
                    break
                if self.puts:                    # the put may have come to nothing, and the message with it
                    self.puts.pop(0)
            for share in self.shares:
                if self.send_fragments(share) != OK:
                    result = OUT_OF_RESOURCE
        finally:
            self.pushing = False
        self.finish_if_done()
        return OK if self.complete else result

    cdef int finish_if_done(self) except -1:
        if self.done >= self.total and self.under_way == 0 and not self.complete:
            self.finish()
        return 0

    cdef char *in_place(self, uint64_t offset, size_t *size) except? NULL:
        """Where a fragment can be sent from, which may become shorter by that; NULL: it has to be packed.

        Data of large blocks (an array's within a pickled object, a matrix's rows) is copied once less so.
        """
        cdef char *place = NULL
        cdef size_t found
        if self.convertor is None:
            return <char *> (self.address + offset)
        self.convertor.seek(offset)
        found = self.convertor.stretch(&place)
        if found < size[0] // 2:
            return NULL
        size[0] = min(size[0], found)
        return place

    cdef int send_fragments(self, list share) except -1:
        cdef Route route = share[0]
        cdef uint64_t offset = share[1], end = share[2]
        cdef size_t window = self.engine.send_pipeline_depth * len(self.shares)
        cdef size_t size
        cdef char *place
        cdef Descriptor descriptor
        cdef FragmentHeader *header
        cdef int taken
        while offset < end and self.under_way < window and not self.complete:
            size = min(end - offset, <uint64_t> (route.btl.max_send_size - sizeof(FragmentHeader)))
            place = self.in_place(offset, &size)
            if place != NULL:
                descriptor = route.btl.prepare_src(route.endpoint, <size_t> place, sizeof(FragmentHeader), size)
            else:
                size = min(size, max(self.total // PACKED_PARTS, <uint64_t> SHORTEST_PACKED))
                descriptor = route.btl.alloc(route.endpoint, sizeof(FragmentHeader) + size)
            if descriptor is None:
                return OUT_OF_RESOURCE
            header = <FragmentHeader *> descriptor.data
            header.kind = KIND_FRAG
            header.receiver = self.receiver
            header.offset = offset
            if place == NULL:
                self.convertor.pack(descriptor.data + sizeof(FragmentHeader), size)
            share[1] = offset + size
            taken = OUT_OF_RESOURCE
            try:
                taken = self.send_part(route, descriptor, size)
            finally:
                if taken != OK:
                    share[1] = offset
            if taken != OK:
                return OUT_OF_RESOURCE
            if is_tracing():
                self.trace(EVENT_FRAGMENT, WAY_SEND, size)
            offset += size
        return OK

    cdef int send_part(self, Route route, Descriptor descriptor, size_t size) except -1:
        """So many bytes of the message, which is not complete before they have left."""
        cdef int taken = OUT_OF_RESOURCE
        descriptor.callback = fragment_sent
        descriptor.context = self
        descriptor.size = size
        descriptor.in_flight = True
        self.under_way += 1
        try:
            taken = route.btl.send(route.endpoint, descriptor, TAG_PML)
        finally:
            if taken != OK:
                self.under_way -= 1
                descriptor.in_flight = False
                route.btl.free(descriptor)
        return taken

    # -- remote memory access -------------------------------------------------------------------------------------

    cdef int put_asked(self, const PutHeader *header) except -1:
        """The receiver has made memory ready for one piece."""
        if self.puts is None:
            self.puts = []
        self.puts.append((<const char *> header)[:sizeof(PutHeader) + header.handle_length])
        if header.total:
            self.receiver = header.receiver
            self.total = header.total
            self.shares = []
            self.stage = STAGE_STREAM
        return self.advance() if self.stage == STAGE_STREAM else 0

    cdef int put(self, bytes packet) except -1:
        cdef const PutHeader *header = <const PutHeader *> <const char *> packet
        cdef Route route = None, candidate
        cdef Descriptor descriptor
        cdef int taken = OUT_OF_RESOURCE
        cdef bytes name = header.route[:ROUTE_NAME].rstrip(b"\0")
        for candidate in self.routes.rdma:
            if candidate.btl.flags & FLAG_PUT and route_name(candidate) == name:
                route = candidate
        if route is None:
            return self.put_failed(packet)
        descriptor = Descriptor.__new__(Descriptor, route.btl, 0)
        descriptor.local_address = self.address + header.offset
        descriptor.remote_address = header.address
        descriptor.remote_handle = packet[sizeof(PutHeader):]
        descriptor.size = header.size
        self.under_way += 1
        try:
            if route.btl.flags & FLAG_NEEDS_REGISTRATION:
                descriptor.local_handle = route.btl.hold_mem(route.endpoint, descriptor.local_address, descriptor.size)
            descriptor.callback = piece_put
            descriptor.context = (self, packet, descriptor.local_handle)
            descriptor.in_flight = True
            taken = route.btl.put(route.endpoint, descriptor)
        except MPIError as error:
            if error.code != ERR_NO_MEM:
                raise
            return self.put_failed(packet)
        finally:
            if taken != OK:
                self.under_way -= 1
                descriptor.in_flight = False
                if descriptor.local_handle is not None:
                    route.btl.release_mem(descriptor.local_handle)
        return taken

    cdef int put_failed(self, bytes packet) except -1:
        """Send the piece as fragments, and let the receiver give its registration back."""
        cdef const PutHeader *header = <const PutHeader *> <const char *> packet
        self.shares.extend(self.share_out(header.offset, header.offset + header.size))
        return self.piece_over(header, 0)

    cdef int piece_over(self, const PutHeader *header, uint64_t size) except -1:
        cdef FinHeader fin
        memset(&fin, 0, sizeof(fin))
        fin.kind = KIND_FIN
        fin.request = header.receiver
        fin.size = size
        fin.piece = header.piece
        if size and self.engine.checksum:
            fin.checksum = crc32c(0, <char *> (self.address + header.offset), size)
        return 0 if self.end(&fin) else self.tell(&fin)

    cdef bint end(self, const FinHeader *fin) except -1:
        """Send it as a part of the message, which is not complete before it has left: a program may make no other call then."""
        cdef Route route = self.routes.first
        cdef Descriptor descriptor = route.btl.alloc(route.endpoint, sizeof(FinHeader))
        if descriptor is None:
            return False
        memcpy(descriptor.data, fin, sizeof(FinHeader))
        return self.send_part(route, descriptor, 0) == OK

    cdef int tell(self, const FinHeader *fin) except -1:
        """Send it by itself, and count it until it has left."""
        if self.engine.control(self, <const char *> fin, sizeof(FinHeader)) is not None:
            self.under_way += 1
        return 0

    cdef int header_left(self, Transfer header, object error) except -1:
        self.under_way -= 1
        if self.complete:
            return self.tell_error()
        if error is not None:
            return self.fail(error)
        return 0 if self.pushing else self.advance()

    cdef int fetched(self, const FinHeader *header) except -1:
        """The receiver has read what it wanted."""
        if header.error:
            self.receiver = 0
            self.fail(MPIError(header.error, f"rank {self.peer} could not receive the message, or read it damaged"))
        else:
            self.finish()
        return 0

    cpdef int fail(self, object error) except -1:
        """Complete with an error, of which a living receiver that waits for the rest is told."""
        if self.stage == STAGE_ANNOUNCE and not self.complete and self.routes.proc.failure is None:
            self.engine.give_back(self.matching, self.peer, self.envelope.sequence, self.routes)
        self.owes_error = self.stage == STAGE_STREAM and not self.complete and self.receiver != 0
        self.total = 0
        self.shares = []
        self.puts = None
        Transfer.fail(self, error)
        return self.tell_error()

    cdef int tell_error(self) except -1:
        """Not before what was put has arrived: the receiver's memory is the program's then."""
        cdef FinHeader fin
        if not self.owes_error or self.under_way:
            return 0
        self.owes_error = False
        if self.routes.proc.failure is not None:
            return 0
        memset(&fin, 0, sizeof(fin))
        fin.kind = KIND_FIN
        fin.error = self.status.error
        fin.request = self.receiver
        return self.tell(&fin)

    cdef int piece_gone(self, bytes packet, int status) except -1:
        """A piece was put, or could not be."""
        cdef const PutHeader *header = <const PutHeader *> <const char *> packet
        if status:
            return self.put_failed(packet)
        self.piece_over(header, header.size)
        self.done += header.size
        if is_tracing():
            self.trace(EVENT_FRAGMENT, WAY_WRITE, header.size)
        return 0


cdef int fragment_sent(object context, Descriptor descriptor, int status) except -1:
    cdef SendRequest request = <SendRequest> context
    request.under_way -= 1
    if request.complete:
        return request.tell_error()
    if status:
        return request.fail(MPIError(status, f"btl {descriptor.btl.name} could not send to rank {request.peer}"))
    request.done += descriptor.size
    return 0 if request.pushing else request.advance()


cdef int piece_put(object context, Descriptor descriptor, int status) except -1:
    cdef SendRequest request
    cdef bytes packet
    request, packet, local_handle = context
    request.under_way -= 1
    if local_handle is not None:
        descriptor.btl.release_mem(local_handle)
    if request.complete:
        return request.tell_error()
    try:
        request.piece_gone(packet, status)
    except Exception as error:
        return request.fail(error)
    return 0 if request.pushing else request.advance()
