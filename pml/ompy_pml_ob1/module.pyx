# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-O3
"""ob1: MPI's matching in software, over any byte transports."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_XDECREF
from libc.stdint cimport int64_t

from ompy.core.board cimport FINALIZE, IRECV, ISEND, MRECV, PROBE, RECV, SEND
from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport ANY_SOURCE, MODE_SYNCHRONOUS, OK
from ompy.core.errors import ERR_PROC_FAILED, ERR_REQUEST, MPIError
from ompy.core.listener cimport listen_now_and_then
from ompy.core.owner cimport NOBODY, engine as occupancy, enter, leave
from ompy.core.proc cimport Proc, table
from ompy.core.progress cimport progress_or_yield, wait_for, wait_until
from ompy.core.request cimport Request, sent
from ompy.core.status cimport StatusRecord
from ompy.core.trace cimport EVENT_SENT, is_tracing, record, trace_clock
from ompy.core.typemap cimport Typemap
from ompy.mca.bml cimport PeerRoutes, Route
from ompy.mca.btl cimport FLAG_GET, TAG_PML, Btl
from ompy.mca.framed_btl cimport FramedBtl
from ompy.mca.pml cimport INTERFACE, wait_for_object

from ompy_pml_ob1.engine cimport Transfer
from ompy_pml_ob1.header cimport KIND_MATCH, Envelope, message_length
from ompy_pml_ob1.matching cimport Direct, Peer, free_message, message_bytes, message_envelope
from ompy_pml_ob1.recv_request cimport unused_recv
from ompy_pml_ob1.send_request cimport SendRequest

interface = INTERFACE


cdef class DetachedMessage(Message):
    def __dealloc__(self):
        if self.message != NULL:
            free_message(self.message)


cdef struct ProbeState:
    void *matching
    int source
    int tag
    Unexpected *found


cdef bint probe_done(void *context) except -1:
    cdef ProbeState *state = <ProbeState *> context
    state.found = (<Matching> state.matching).find(state.source, state.tag)
    if state.found == NULL:
        (<Matching> state.matching).check_source(state.source)
    return state.found != NULL


cdef int fill_status(Unexpected *message, StatusRecord *status) except -1:
    if status != NULL:
        status.source = message_envelope(message).source
        status.tag = message_envelope(message).tag
        status.error = 0
        status.cancelled = False
        status.nbytes = message_length(message_bytes(message), message.length)
    return 0


# -- beginning a send; functions, since what is called by name in one place gcc puts there

cdef SendRequest begin_send(Ob1 ob1, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                            Communicator comm, bint deferrable):
    """A send that has begun; None when it is over, or its message is to leave with others (`ob1.departure`)."""
    cdef SendRequest request
    cdef int64_t place = -1
    enter()
    try:
        if send_at_once(ob1, address, count, typemap, dest, tag, mode, comm, deferrable, &place):
            return None
        request = ob1.new_send(address, count, typemap, dest, tag, mode, comm)
        request.place = place
        request.start()
        return request
    finally:
        leave()


cdef bint send_at_once(Ob1 ob1, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                       Communicator comm, bint deferrable, int64_t *place) except -1:
    """A short message in standard or ready mode goes out in place, without a request.

    False: it could not, and the request that is made instead has `place` in the order of messages, if that is not negative.
    Nothing is sent so while anything waits for resources.
    """
    cdef Peer *peer = &(<Matching> comm.pml).peers[dest]
    cdef Envelope envelope
    cdef void *route
    cdef size_t length
    cdef int taken
    cdef int64_t begun = 0
    if mode == MODE_SYNCHRONOUS or peer.routes == NULL or ob1.engine.has_waiting:
        return False
    route = <void *> (<PeerRoutes> peer.routes).first
    length = count * typemap.size
    if length + sizeof(Envelope) > (<Route> route).btl.eager_limit or peer.failed:
        return False
    if (typemap.contiguous and length >= (<Route> route).btl.min_rdma_pipeline_size
            and ob1.engine.use_get and (<Route> route).btl.flags & FLAG_GET
            and (<Route> route).btl.exposes((<Route> route).endpoint, address, length)):
        return False                             # the receiver reads it
    envelope.kind = KIND_MATCH
    envelope.flags = 0
    envelope.spare = 0
    envelope.sequence = peer.next_sequence
    envelope.source = comm.rank
    envelope.tag = tag
    envelope.context = comm.context
    if is_tracing():
        begun = trace_clock()
    if typemap.contiguous:
        peer.next_sequence += 1
        (<Route> route).btl.deferrable = deferrable
        try:
            taken = (<Route> route).btl.sendi((<Route> route).endpoint, <char *> &envelope, sizeof(Envelope),
                                              <const char *> address, length, TAG_PML)
        except BaseException:
            ob1.engine.give_back(<Matching> comm.pml, dest, envelope.sequence, <PeerRoutes> peer.routes)
            raise
        if deferrable and taken == OK and (<Route> route).btl.departure is not None:
            ob1.departure = (<Route> route).btl.departure
    else:
        taken = send_packed(ob1, address, count, typemap, <Route> route, <Matching> comm.pml, dest, &envelope)
    if taken == OK:
        if is_tracing():
            record(EVENT_SENT, 0, NULL, envelope.context, envelope.source, dest, tag, envelope.sequence, length, begun)
        return True
    place[0] = envelope.sequence
    return False


cdef int send_packed(Ob1 ob1, size_t address, Py_ssize_t count, Typemap typemap, Route route, Matching matching, int dest,
                     Envelope *envelope) except -1:
    """Typed data in a row, in memory of the engine's."""
    cdef char *packed = ob1.engine.packed(<char *> address, count, typemap)
    matching.peers[dest].next_sequence += 1
    try:
        return route.btl.sendi(route.endpoint, <char *> envelope, sizeof(Envelope), packed, count * typemap.size, TAG_PML)
    except BaseException:
        ob1.engine.give_back(matching, dest, envelope.sequence, <PeerRoutes> matching.peers[dest].routes)
        raise
    finally:
        ob1.engine.return_scratch(packed)


cdef class Ob1(Pml):
    """Point-to-point messages over the BTLs that `bml` leads to.

    Parameters:
        bml: the BTL management layer.
        send_pipeline_depth, rdma_pipeline_depth: fragments, and pieces read or written, under way for one message.
        use_get, use_put: whether remote memory access may be used.
        checksum: compare checksums of what remote memory access moved.
        name: the PML's, which may be another component that has opened this one.
    """

    def __init__(self, Bml bml not None, size_t send_pipeline_depth=4, size_t rdma_pipeline_depth=4,
                 bint use_get=True, bint use_put=True, bint checksum=False, str name="ob1"):
        self.name = name
        self.bml = bml
        self.engine = Engine(bml, send_pipeline_depth, rdma_pipeline_depth, use_get, use_put, checksum, name)
        self.dispatcher = Dispatcher(self.engine)
        bml.register(TAG_PML, self.dispatcher)
        bml.register_error(self.on_error)

    cpdef int add_comm(self, Communicator comm) except -1:
        """Be ready for messages on a new communicator; those that came early are matched now."""
        cdef Matching matching = Matching(comm)
        cdef Proc proc
        comm.pml = matching
        enter()
        try:
            for proc in table.procs:
                if proc is not None and proc.failure is not None:
                    self.fail_peer(matching, proc)
            return self.dispatcher.add(matching)
        finally:
            leave()

    cpdef int del_comm(self, Communicator comm) except -1:
        """Forget a communicator; what was not received is dropped."""
        enter()
        try:
            self.dispatcher.drop(comm)
        finally:
            leave()
        comm.pml = None
        return 0

    cpdef int add_proc(self, Proc proc) except -1:
        """Find the routes to a peer now rather than at the first message."""
        enter()
        try:
            if proc.routes is None:
                proc.routes = self.bml.add_proc(proc)
        finally:
            leave()
        return 0

    cpdef int del_proc(self, Proc proc) except -1:
        """No more contact with a peer."""
        enter()
        try:
            if proc.routes is not None:
                self.bml.del_proc(proc)
        finally:
            leave()
        return 0

    # -- sending --------------------------------------------------------------------------------------------------

    cpdef Request send(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                       Communicator comm):
        """Blocking send: None when it is over, else the request that the caller waits for."""
        cdef SendRequest request = begin_send(self, address, count, typemap, dest, tag, mode, comm, False)
        if request is not None:
            request.operation = SEND + mode
        else:
            listen_now_and_then()
        return request

    cdef SendRequest new_send(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                              Communicator comm):
        cdef SendRequest request = SendRequest.__new__(SendRequest)
        request.prepare(self.engine, <Matching> comm.pml, address, count, typemap, dest, tag, mode)
        request.operation = ISEND + mode
        return request

    cpdef Request isend(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                        Communicator comm):
        """Non-blocking send."""
        cdef bint deferrable = self.deferrable
        cdef SendRequest request
        cdef Request departure
        self.deferrable = False
        request = begin_send(self, address, count, typemap, dest, tag, mode, comm, deferrable)
        if request is not None:
            return request
        listen_now_and_then()
        if self.departure is None:
            return sent
        departure, self.departure = self.departure, None
        return departure

    cpdef Request isend_init(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                             Communicator comm):
        """Persistent send."""
        cdef SendRequest request = self.new_send(address, count, typemap, dest, tag, mode, comm)
        request.persistent = True
        return request

    # -- receiving ------------------------------------------------------------------------------------------------

    cdef RecvRequest new_recv(self, size_t address, Py_ssize_t count, Typemap typemap, object allocate, int source,
                              int tag, Communicator comm):
        cdef RecvRequest request = unused_recv(self.engine, <Matching> comm.pml)
        request.aim(address, count, typemap, allocate, source, tag)
        request.operation = IRECV
        return request

    cdef Request recv(self, size_t address, Py_ssize_t count, Typemap typemap, int source, int tag, Communicator comm,
                      StatusRecord *status):
        cdef Matching matching = <Matching> comm.pml
        cdef Direct direct
        cdef RecvRequest request
        cdef Request shown = matching.waiting()
        if not typemap.contiguous or not self.may_wait_directly(matching, source, tag):
            request = self.new_recv(address, count, typemap, None, source, tag, comm)
            request.start()
        else:
            direct.source = source
            direct.tag = tag
            direct.address = address
            direct.count = count
            direct.capacity = count * typemap.size
            direct.typemap = <PyObject *> typemap
            direct.allocate = NULL
            request = self.wait_directly(matching, &direct, shown)
            if request is None:
                if status != NULL:
                    status[0] = direct.status
                return None
        request.operation = RECV
        return request

    cdef object recv_object(self, object allocate, int source, int tag, Communicator comm, StatusRecord *status):
        cdef Matching matching = <Matching> comm.pml
        cdef Direct direct
        cdef RecvRequest request
        cdef Request shown = matching.waiting()
        if not self.may_wait_directly(matching, source, tag):
            request = self.new_recv(0, 0, None, allocate, source, tag, comm)
            request.start()
        else:
            direct.source = source
            direct.tag = tag
            direct.capacity = 0
            direct.allocate = <PyObject *> allocate
            request = self.wait_directly(matching, &direct, shown)
            if request is None:
                if status != NULL:
                    status[0] = direct.status
                block = <object> direct.block
                Py_DECREF(block)
                return block
        request.operation = RECV
        return wait_for_object(request, status)

    # From here to where `direct` stands in line nothing may run that lets another thread in, such as a garbage collection: the
    # message would come, find nobody, and be looked for by nobody.
    cdef inline bint may_wait_directly(self, Matching matching, int source, int tag) noexcept:
        return (matching.direct == NULL and matching.failures is None and not is_tracing()
                and occupancy.owner == NOBODY and matching.find(source, tag) == NULL)

    cdef RecvRequest wait_directly(self, Matching matching, Direct *direct, Request shown):
        """Stand in line with the posted ones.  The request that has carried on, None when the message is there."""
        cdef RecvRequest request
        cdef bint interrupted = True
        shown.peer = direct.source
        shown.tag = direct.tag
        shown.nbytes = direct.capacity
        direct.serial = matching.serial
        matching.serial += 1
        direct.over = False
        direct.request = direct.block = NULL
        matching.direct = direct
        matching.communicator.under_way += 1
        try:
            wait_for(&direct.over, shown)
            interrupted = False
        finally:
            matching.communicator.under_way -= 1
            if interrupted:
                self.withdraw_direct(matching, direct)
        if direct.request == NULL:
            return None
        request = <RecvRequest> direct.request
        Py_DECREF(request)
        return request

    cdef int withdraw_direct(self, Matching matching, Direct *direct) except -1:
        """The caller's memory may go.  (That the message came first, the signal handler itself must have waited.)"""
        cdef RecvRequest request
        enter()
        if matching.direct == direct:
            matching.direct = NULL
        leave()
        Py_XDECREF(direct.block)
        if direct.request != NULL:
            request = <RecvRequest> direct.request
            Py_DECREF(request)
            request.abandon(None)
        return 0

    cpdef Request irecv(self, size_t address, Py_ssize_t count, Typemap typemap, int source, int tag,
                        Communicator comm):
        """Non-blocking receive."""
        cdef RecvRequest request = self.new_recv(address, count, typemap, None, source, tag, comm)
        enter()
        try:
            request.look_for_message()
        finally:
            leave()
        return request

    cpdef Request irecv_init(self, size_t address, Py_ssize_t count, Typemap typemap, int source, int tag,
                             Communicator comm):
        """Persistent receive."""
        cdef RecvRequest request = self.new_recv(address, count, typemap, None, source, tag, comm)
        request.persistent = True
        return request

    cpdef Request irecv_object(self, object allocate, int source, int tag, Communicator comm):
        """A receive of any size into memory made at match time."""
        cdef RecvRequest request = self.new_recv(0, 0, None, allocate, source, tag, comm)
        request.start()
        return request

    # -- probing --------------------------------------------------------------------------------------------------

    cdef bint iprobe(self, int source, int tag, Communicator comm, StatusRecord *status) except -1:
        cdef Matching matching = <Matching> comm.pml
        cdef Unexpected *message = matching.find(source, tag)
        if message == NULL:
            progress_or_yield()
            message = matching.find(source, tag)
        if message == NULL:
            matching.check_source(source)
            return False
        fill_status(message, status)
        return True

    cdef Unexpected *wait_for_message(self, int source, int tag, Communicator comm) except NULL:
        cdef ProbeState state
        cdef Request shown
        matching = <Matching> comm.pml
        state.matching = <void *> matching
        state.source = source
        state.tag = tag
        state.found = matching.find(source, tag)
        if state.found == NULL:
            shown = Request()
            shown.operation = PROBE
            shown.peer = source
            shown.tag = tag
            shown.communicator = comm
            wait_until(probe_done, &state, shown)
        return state.found

    cdef int probe(self, int source, int tag, Communicator comm, StatusRecord *status) except -1:
        return fill_status(self.wait_for_message(source, tag, comm), status)

    cdef Message detach(self, int source, int tag, Communicator comm):
        """The oldest message that matches, out of the queues; None when there is none."""
        cdef Matching matching = <Matching> comm.pml
        cdef DetachedMessage detached
        cdef Unexpected *message
        enter()
        try:
            detached = DetachedMessage.__new__(DetachedMessage)
            message = matching.find(source, tag)
            if message == NULL:
                return None
            matching.remove(message)
        finally:
            leave()
        detached.matching = matching
        detached.message = message
        detached.communicator = comm
        fill_status(message, &detached.status)
        return detached

    cpdef Message improbe(self, int source, int tag, Communicator comm):
        """Take a message out of the queues; None when there is none."""
        cdef Message message = self.detach(source, tag, comm)
        if message is None:
            progress_or_yield()
            message = self.detach(source, tag, comm)
        if message is None:
            (<Matching> comm.pml).check_source(source)
        return message

    cpdef Message mprobe(self, int source, int tag, Communicator comm):
        """Wait for a message and take it out of the queues."""
        cdef Message message = None
        while message is None:                   # another thread may be quicker
            self.wait_for_message(source, tag, comm)
            message = self.detach(source, tag, comm)
        return message

    cdef Request receive_detached(self, RecvRequest request, DetachedMessage message):
        cdef Unexpected *taken = message.message
        if taken == NULL:
            raise MPIError(ERR_REQUEST, "this message was received already")
        message.message = NULL
        request.operation = MRECV
        enter()
        try:
            request.begin()
            request.take_message(message_bytes(taken), taken.length)
        finally:
            free_message(taken)
            leave()
        return request

    cpdef Request imrecv(self, size_t address, Py_ssize_t count, Typemap typemap, Message message):
        """Receive a message that was taken out."""
        cdef DetachedMessage detached = <DetachedMessage?> message
        return self.receive_detached(self.new_recv(address, count, typemap, None, detached.status.source,
                                                   detached.status.tag, detached.communicator), detached)

    cpdef Request imrecv_object(self, object allocate, Message message):
        """Receive a message that was taken out, into memory that `allocate(nbytes)` makes."""
        cdef DetachedMessage detached = <DetachedMessage?> message
        return self.receive_detached(self.new_recv(0, 0, None, allocate, detached.status.source, detached.status.tag,
                                                   detached.communicator), detached)

    # -- trouble and the end --------------------------------------------------------------------------------------

    cpdef int peer_lost(self, Proc proc, object error) except -1:
        """Contact has ended: whatever involves the peer fails with an error that names it."""
        cdef Matching matching
        cdef Transfer transfer
        if proc.failure is not None:
            return 0
        Pml.peer_lost(self, proc, error)
        enter()
        try:
            for transfer in self.engine.transfers():
                if transfer.routes is not None and transfer.routes.proc is proc and not transfer.complete:
                    transfer.fail(proc.failure)
            for matching in list(self.dispatcher.matchings.values()):
                self.fail_peer(matching, proc)
        finally:
            leave()
        return 0

    cdef int fail_peer(self, Matching matching, Proc proc) except -1:
        cdef int rank = matching.communicator.remote_group.rank_of(proc.index)
        if rank >= 0:
            # A dead peer's message may yet be replaced by another one's; what was damaged was perhaps the one waited for.
            matching.fail_source(rank, proc.failure, proc.failure.code != ERR_PROC_FAILED)
            if matching.direct != NULL and matching.direct.source in matching.failures:
                failure = matching.failures[matching.direct.source]
                self.dispatcher.request_in_place(matching).fail(failure)
        return 0

    def statistics(self):
        """Counters by name, those of a layer over the BTLs included."""
        cdef Btl btl
        numbers = {
            "messages_matched": self.dispatcher.matched,
            "messages_kept": self.dispatcher.kept,
            "sends_held_back": self.engine.retries,
        }
        for btl in self.bml.btls:
            if isinstance(btl, FramedBtl):
                for name, number in (<FramedBtl> btl).own_statistics().items():
                    numbers[name] = numbers.get(name, 0) + number
        return numbers

    cpdef dict dump(self, Communicator comm):
        """Posted and unexpected queues."""
        return (<Matching> comm.pml).dump() if comm.pml is not None else {}

    cpdef int finalize(self) except -1:
        """Send what still waits for resources, or was left to us; whoever is to receive it drives its own progress."""
        cdef Request shown = Request()
        shown.operation = FINALIZE
        shown.peer = ANY_SOURCE
        return wait_until(is_settled, <void *> self, shown)


cdef bint is_settled(void *context) except -1:
    return (<Ob1> context).engine.settled()
