# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""pml/rpi: MPI's semantics above a request progression interface."""
from ompy.core.board cimport IRECV, ISEND, MPROBE, MRECV, PROBE, SEND
from ompy.core.errors import ERR_REQUEST, ERR_UNSUPPORTED_OPERATION, MPIError
from ompy.core.owner cimport enter, leave
from ompy.core.proc cimport Proc
from ompy.core.progress cimport progress_or_yield, wait_until
from ompy.core.progress_source cimport register_source, unregister_source
from ompy.mca.pml cimport INTERFACE

interface = INTERFACE


cdef struct ProbeState:
    void *pml
    void *wanted
    Envelope found


cdef bint probe_done(void *context) except -1:
    cdef ProbeState *state = <ProbeState *> context
    return (<RpiPml> state.pml).look(<RecvRequest> state.wanted, &state.found)


cdef int fill_status(const Envelope *envelope, Scope scope, StatusRecord *status) noexcept:
    if status != NULL:
        status.source = scope.rank_of(envelope.source)
        status.tag = envelope.tag
        status.error = 0
        status.cancelled = False
        status.nbytes = envelope.length
    return 0


cdef class RpiPml(Pml):
    """Sends, receives and probes over one request progression interface.

    Parameters:
        rpi: the component below.
        rank: of this process in its world.
    """

    def __init__(self, Rpi rpi not None, int rank):
        self.name = "rpi"
        self.rpi = rpi
        self.layer = Layer(rpi, rank)
        self.scopes = {}
        rpi.begin(self.layer)
        register_source(rpi)

    cpdef int add_comm(self, Communicator comm) except -1:
        """Be ready for messages on a new communicator."""
        cdef Scope scope = Scope(comm)
        other = self.scopes.setdefault(scope.number, scope)
        if other is not scope:
            raise MPIError(ERR_UNSUPPORTED_OPERATION,
                           f"{comm!r} and {(<Scope> other).communicator!r} have the same number on the wire of pml rpi; free "
                           "communicators that are no longer used")
        comm.pml = scope
        return 0

    cpdef int del_comm(self, Communicator comm) except -1:
        """Forget a communicator; what was not received is dropped."""
        cdef Scope scope = comm.pml
        enter()
        try:
            del self.scopes[scope.number]
            self.rpi.close_scope(scope.number)
        finally:
            leave()
        comm.pml = None
        return 0

    cpdef int add_proc(self, Proc proc) except -1:
        """Nothing to prepare: the component reaches every process of the job."""
        return 0

    def serves_other_jobs(self):
        """The component reaches its own job's processes alone."""
        return False

    cpdef int del_proc(self, Proc proc) except -1:
        """Nothing to give back."""
        return 0

    # -- sending --------------------------------------------------------------------------------------------------

    cdef SendRequest new_send(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                              Communicator comm):
        cdef SendRequest request = SendRequest.__new__(SendRequest)
        request.prepare(self.layer, <Scope> comm.pml, address, count, typemap, dest, tag, mode)
        request.operation = ISEND + mode
        return request

    cpdef Request send(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                       Communicator comm):
        """Blocking send: the request to be waited for."""
        cdef SendRequest request = self.new_send(address, count, typemap, dest, tag, mode, comm)
        request.operation = SEND + mode
        enter()
        try:
            request.announce()
            self.rpi.send(request)
        finally:
            leave()
        return request

    cpdef Request isend(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                        Communicator comm):
        """Non-blocking send."""
        cdef SendRequest request = self.new_send(address, count, typemap, dest, tag, mode, comm)
        request.start()
        return request

    cpdef Request isend_init(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                             Communicator comm):
        """Persistent send."""
        cdef SendRequest request = self.new_send(address, count, typemap, dest, tag, mode, comm)
        request.persistent = True
        return request

    # -- receiving ------------------------------------------------------------------------------------------------

    cdef RecvRequest new_recv(self, size_t address, Py_ssize_t count, Typemap typemap, object allocate, int source,
                              int tag, Communicator comm):
        cdef RecvRequest request = RecvRequest.__new__(RecvRequest)
        request.prepare(self.layer, <Scope> comm.pml, address, count, typemap, allocate, source, tag)
        request.operation = IRECV
        return request

    cpdef Request irecv(self, size_t address, Py_ssize_t count, Typemap typemap, int source, int tag,
                        Communicator comm):
        """Non-blocking receive."""
        cdef RecvRequest request = self.new_recv(address, count, typemap, None, source, tag, comm)
        request.start()
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

    cdef bint look(self, RecvRequest wanted, Envelope *found) except -1:
        """Whether a message that it would take is here."""
        enter()
        try:
            return self.rpi.probe(wanted, found)
        finally:
            leave()

    cdef bint iprobe(self, int source, int tag, Communicator comm, StatusRecord *status) except -1:
        cdef RecvRequest wanted = self.new_recv(0, 0, None, None, source, tag, comm)
        cdef Envelope found
        if not self.look(wanted, &found):
            progress_or_yield()
            if not self.look(wanted, &found):
                return False
        fill_status(&found, <Scope> comm.pml, status)
        return True

    cdef int probe(self, int source, int tag, Communicator comm, StatusRecord *status) except -1:
        cdef RecvRequest wanted = self.new_recv(0, 0, None, None, source, tag, comm)
        cdef ProbeState state
        state.pml = <void *> self
        state.wanted = <void *> wanted
        wanted.operation = PROBE
        wanted.expect()
        wait_until(probe_done, &state, wanted)
        fill_status(&state.found, <Scope> comm.pml, status)
        return 0

    cdef Message take(self, RecvRequest wanted):
        cdef Detached detached
        cdef TakenMessage message
        enter()
        try:
            detached = self.rpi.detach(wanted)
        finally:
            leave()
        if detached is None:
            return None
        message = TakenMessage.__new__(TakenMessage)
        message.detached = detached
        message.communicator = wanted.communicator
        fill_status(&detached.envelope, wanted.communicator_scope, &message.status)
        return message

    cpdef Message improbe(self, int source, int tag, Communicator comm):
        """Take a message out of the queues; None when there is none."""
        cdef RecvRequest wanted = self.new_recv(0, 0, None, None, source, tag, comm)
        cdef Message message = self.take(wanted)
        if message is None:
            progress_or_yield()
            message = self.take(wanted)
        return message

    cpdef Message mprobe(self, int source, int tag, Communicator comm):
        """Wait for a message and take it out of the queues."""
        cdef RecvRequest wanted = self.new_recv(0, 0, None, None, source, tag, comm)
        cdef ProbeState state
        cdef Message message = None
        state.pml = <void *> self
        state.wanted = <void *> wanted
        wanted.operation = MPROBE
        wanted.expect()
        while message is None:
            wait_until(probe_done, &state, wanted)
            message = self.take(wanted)
        return message

    cdef Request receive_taken(self, RecvRequest request, TakenMessage message):
        cdef Detached detached
        request.operation = MRECV
        enter()
        try:
            detached, message.detached = message.detached, None
            if detached is None:
                raise MPIError(ERR_REQUEST, "this message was received already")
            request.expect()
            self.rpi.receive_detached(request, detached)
        finally:
            leave()
        return request

    cpdef Request imrecv(self, size_t address, Py_ssize_t count, Typemap typemap, Message message):
        """Receive a message that was taken out."""
        cdef TakenMessage taken = <TakenMessage?> message
        return self.receive_taken(self.new_recv(address, count, typemap, None, taken.status.source, taken.status.tag,
                                                taken.communicator), taken)

    cpdef Request imrecv_object(self, object allocate, Message message):
        """Receive a message that was taken out, into memory that `allocate(nbytes)` makes."""
        cdef TakenMessage taken = <TakenMessage?> message
        return self.receive_taken(self.new_recv(0, 0, None, allocate, taken.status.source, taken.status.tag,
                                                taken.communicator), taken)

    # -- for people, and the end ----------------------------------------------------------------------------------

    cpdef dict dump(self, Communicator comm):
        """Posted and unexpected queues: (source, tag) and (source, tag, bytes)."""
        cdef Scope scope = comm.pml
        if scope is None:
            return {}
        enter()
        try:
            entries = self.rpi.dump()
        finally:
            leave()
        return {
            "posted": [
                (rank if rank < 0 else scope.rank_of(rank), tag)
                for rank, tag, number, _ in entries["posted"] if number == scope.number
            ],
            "unexpected": [
                (scope.rank_of(rank), tag, nbytes)
                for rank, tag, number, nbytes in entries["unexpected"] if number == scope.number
            ],
        }

    cpdef int finalize(self) except -1:
        """Hand over what was sent, and leave the network."""
        self.layer.settle()
        self.rpi.finalize()
        unregister_source(self.rpi)
        return 0
