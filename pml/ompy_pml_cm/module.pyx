# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""cm: MPI's point-to-point calls as those of a matching transport layer."""
from ompy.core.board cimport IRECV, ISEND, MRECV, PROBE, SEND
from ompy.core.constants cimport MODE_SYNCHRONOUS, OK
from ompy.core.owner cimport enter, leave
from ompy.core.proc cimport Proc
from ompy.core.progress cimport progress_or_yield, wait_until
from ompy.core.status cimport StatusRecord
from ompy.mca.mtl cimport loss
from ompy.mca.pml cimport INTERFACE, Message

interface = INTERFACE


cdef struct ProbeState:
    void *pml
    void *comm
    int source
    int tag
    StatusRecord status


cdef bint probe_done(void *context) except -1:
    cdef ProbeState *state = <ProbeState *> context
    if (<Cm> state.pml).look(state.source, state.tag, <Communicator> state.comm, &state.status):
        return True
    check_source(<Communicator> state.comm, state.source)
    return False


cdef int check_source(Communicator comm, int source) except -1:
    """Raises the failure of whoever a message would be from."""
    failure = loss(comm, source)
    if failure is not None:
        raise failure
    return 0


cdef class Cm(Pml):
    """Point-to-point messages over an MTL.

    Parameters:
        mtl: matches and moves.
        bml: what the MTL moves bytes by; its BTLs tell of broken peers.  None where the MTL has means of its own.
    """

    def __init__(self, Mtl mtl not None, Bml bml=None):
        self.name = "cm"
        self.mtl = mtl
        self.bml = bml
        self.tag_upper_bound = mtl.tag_upper_bound
        if bml is not None:
            bml.register_error(self.on_error)

    cpdef int add_comm(self, Communicator comm) except -1:
        """Be ready for messages on a new communicator."""
        enter()
        try:
            return self.mtl.add_comm(comm)
        finally:
            leave()

    cpdef int del_comm(self, Communicator comm) except -1:
        """Forget a communicator; what was not received is dropped."""
        enter()
        try:
            self.mtl.del_comm(comm)
        finally:
            leave()
        comm.pml = None
        return 0

    cpdef int add_proc(self, Proc proc) except -1:
        """Find the way to a peer now rather than at the first message."""
        return self.mtl.add_proc(proc)

    def serves_other_jobs(self):
        """As the transport does."""
        return self.mtl.serves_other_jobs()

    cpdef int del_proc(self, Proc proc) except -1:
        """No more contact with a peer."""
        self.mtl.del_proc(proc)
        if self.bml is not None and proc.routes is not None:
            self.bml.del_proc(proc)
        return 0

    # -- sending --------------------------------------------------------------------------------------------------

    cpdef Request send(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                       Communicator comm):
        """Blocking send; a short one in standard or ready mode makes no request, and None is returned."""
        cdef MtlSend request
        if typemap.contiguous and mode != MODE_SYNCHRONOUS:
            if self.mtl.send(<const char *> address, count * typemap.size, dest, tag, mode, comm) == OK:
                return None
        request = self.new_send(address, count, typemap, dest, tag, mode, comm)
        request.operation = SEND + mode
        request.start()
        return request

    cdef MtlSend new_send(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                          Communicator comm):
        cdef MtlSend request = self.mtl.new_send()
        request.prepare(self.mtl, comm, address, count, typemap, dest, tag, mode)
        request.operation = ISEND + mode
        return request

    cpdef Request isend(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                        Communicator comm):
        """Non-blocking send."""
        cdef MtlSend request = self.new_send(address, count, typemap, dest, tag, mode, comm)
        request.start()
        return request

    cpdef Request isend_init(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                             Communicator comm):
        """Persistent send."""
        cdef MtlSend request = self.new_send(address, count, typemap, dest, tag, mode, comm)
        request.persistent = True
        return request

    # -- receiving ------------------------------------------------------------------------------------------------

    cdef MtlRecv new_recv(self, size_t address, Py_ssize_t count, Typemap typemap, object allocate, int source, int tag,
                          Communicator comm):
        cdef MtlRecv request = self.mtl.new_recv()
        request.prepare(self.mtl, comm, address, count, typemap, allocate, source, tag)
        request.operation = IRECV
        return request

    cpdef Request irecv(self, size_t address, Py_ssize_t count, Typemap typemap, int source, int tag,
                        Communicator comm):
        """Non-blocking receive."""
        cdef MtlRecv request = self.new_recv(address, count, typemap, None, source, tag, comm)
        request.start()
        return request

    cpdef Request irecv_init(self, size_t address, Py_ssize_t count, Typemap typemap, int source, int tag,
                             Communicator comm):
        """Persistent receive."""
        cdef MtlRecv request = self.new_recv(address, count, typemap, None, source, tag, comm)
        request.persistent = True
        return request

    cpdef Request irecv_object(self, object allocate, int source, int tag, Communicator comm):
        """A receive of any size into memory made at match time."""
        cdef MtlRecv request = self.new_recv(0, 0, None, allocate, source, tag, comm)
        request.start()
        return request

    # -- probing --------------------------------------------------------------------------------------------------

    cdef bint iprobe(self, int source, int tag, Communicator comm, StatusRecord *status) except -1:
        if self.look(source, tag, comm, status):
            return True
        progress_or_yield()
        if self.look(source, tag, comm, status):
            return True
        check_source(comm, source)
        return False

    cdef bint look(self, int source, int tag, Communicator comm, StatusRecord *status) except -1:
        enter()
        try:
            return self.mtl.iprobe(source, tag, comm, status)
        finally:
            leave()

    cdef int probe(self, int source, int tag, Communicator comm, StatusRecord *status) except -1:
        cdef ProbeState state
        cdef Request shown
        state.pml = <void *> self
        state.comm = <void *> comm
        state.source = source
        state.tag = tag
        if not probe_done(&state):
            shown = Request()
            shown.operation = PROBE
            shown.peer = source
            shown.tag = tag
            shown.communicator = comm
            wait_until(probe_done, &state, shown)
        if status != NULL:
            status[0] = state.status
        return 0

    cpdef Message improbe(self, int source, int tag, Communicator comm):
        """Take a message out of the queues; None when there is none."""
        cdef Message message = self.take_out(source, tag, comm)
        if message is None:
            progress_or_yield()
            message = self.take_out(source, tag, comm)
        if message is None:
            check_source(comm, source)
        return message

    cdef Message take_out(self, int source, int tag, Communicator comm):
        enter()
        try:
            return self.mtl.improbe(source, tag, comm)
        finally:
            leave()

    cpdef Request imrecv(self, size_t address, Py_ssize_t count, Typemap typemap, Message message):
        """Receive a message that was taken out."""
        return self.receive_taken(self.new_recv(address, count, typemap, None, message.status.source, message.status.tag,
                                                message.communicator), message)

    cpdef Request imrecv_object(self, object allocate, Message message):
        """Receive a message that was taken out, into memory that `allocate(nbytes)` makes."""
        return self.receive_taken(self.new_recv(0, 0, None, allocate, message.status.source, message.status.tag,
                                                message.communicator), message)

    cdef Request receive_taken(self, MtlRecv request, Message message):
        request.operation = MRECV
        enter()
        try:
            request.begin()
            self.mtl.imrecv(request, message)
        finally:
            leave()
        return request

    # -- trouble and the end --------------------------------------------------------------------------------------

    cpdef int peer_lost(self, Proc proc, object error) except -1:
        """Contact has ended: whatever involves the peer fails with an error that names it."""
        if proc.failure is not None:
            return 0
        Pml.peer_lost(self, proc, error)
        enter()
        try:
            self.mtl.peer_lost(proc)
        finally:
            leave()
        return 0

    cpdef dict dump(self, Communicator comm):
        """Posted and unexpected queues."""
        return self.mtl.dump(comm) if comm.pml is not None else {}

    cpdef int finalize(self) except -1:
        """Get out what was sent; whoever is to receive it drives its own progress."""
        return self.mtl.finalize()

    cpdef int close(self) except -1:
        """Nobody sends here any more."""
        return self.mtl.close()

    cpdef dict cards(self):
        """The MTL's own address, where it has one."""
        return self.mtl.cards()
