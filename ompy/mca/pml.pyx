# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
# distutils: extra_compile_args=-Os
"""Base classes of point-to-point management layers.  The contract is in `pml.pxd`."""
from ompy.core.board cimport PROBE, RECV, SEND
from ompy.core.constants cimport TAG_UPPER_BOUND
from ompy.core.progress cimport progress_or_yield, wait, wait_until
from ompy.core.progress_source cimport wake
from ompy.core.status cimport set_empty

from ompy.core.errors import ERR_OTHER, ERR_PROC_FAILED, MPIError

interface = INTERFACE

closed = None


cdef class Message:
    """A message that a matched probe took out of the queues."""

    def __cinit__(self, *args, **kwargs):
        set_empty(&self.status)

    def describe(self, int source, int tag, Py_ssize_t nbytes):
        """Fill in the status, for components in plain Python: where the message comes from, and its bytes."""
        self.status.source = source
        self.status.tag = tag
        self.status.nbytes = nbytes


cdef struct Probe:
    void *pml
    void *comm
    int source
    int tag


cdef bint message_is_there(void *context) except -1:
    cdef Probe *state = <Probe *> context
    return (<Pml> state.pml).seen(state.source, state.tag, <Communicator> state.comm) is not None


cdef class Pml:
    """Base of point-to-point management layers.

    Parameters:
        name: the component's.
    """

    def __cinit__(self, *args, **kwargs):
        self.name = type(self).__name__
        self.tag_upper_bound = TAG_UPPER_BOUND

    def __init__(self, str name not None):
        self.name = name

    cpdef int add_comm(self, Communicator comm) except -1:
        """Be ready for messages on a new communicator."""
        raise NotImplementedError

    cpdef int del_comm(self, Communicator comm) except -1:
        """The communicator is gone on this process."""
        raise NotImplementedError

    cpdef int add_proc(self, Proc proc) except -1:
        """First contact with a peer."""
        raise NotImplementedError

    cpdef int del_proc(self, Proc proc) except -1:
        """No more contact with a peer."""
        raise NotImplementedError

    def serves_other_jobs(self):
        """Whether processes of other jobs that this one's job meets can be peers (MPI-4.1, 11.8 to 11.10)."""
        return True

    cpdef int peer_lost(self, Proc proc, object error) except -1:
        """Contact with a peer has ended: what needs it ends with an error that names it."""
        if not (isinstance(error, MPIError) and error.code != ERR_PROC_FAILED):
            error = MPIError(
                ERR_PROC_FAILED, f"rank {proc.rank} of {proc.job} (host {proc.host}, pid {proc.pid}) is gone: {error}"
            )
        proc.fail(error)
        wake()
        return 0

    def on_error(self, btl, Proc proc not None, error):
        """What a BTL reports, as `Bml.register_error` has it."""
        self.peer_lost(proc, error)

    cpdef Request send(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                       Communicator comm):
        """Blocking send (MPI-4.1, 3.2.1 and 3.4): the request to be waited for, None when it is over."""
        cdef Request request = self.isend(address, count, typemap, dest, tag, mode, comm)
        if not request.complete:
            request.operation = SEND + mode
        return request

    cpdef Request isend(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                        Communicator comm):
        """Non-blocking send (MPI-4.1, 3.7.2)."""
        raise NotImplementedError

    cpdef Request isend_init(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                             Communicator comm):
        """Persistent send (MPI-4.1, 3.9)."""
        raise NotImplementedError

    cdef Request recv(self, size_t address, Py_ssize_t count, Typemap typemap, int source, int tag, Communicator comm,
                      StatusRecord *status):
        cdef Request request = self.irecv(address, count, typemap, source, tag, comm)
        request.operation = RECV
        return request

    cpdef Request irecv(self, size_t address, Py_ssize_t count, Typemap typemap, int source, int tag,
                        Communicator comm):
        """Non-blocking receive (MPI-4.1, 3.7.2)."""
        raise NotImplementedError

    cpdef Request irecv_init(self, size_t address, Py_ssize_t count, Typemap typemap, int source, int tag,
                             Communicator comm):
        """Persistent receive (MPI-4.1, 3.9)."""
        raise NotImplementedError

    cpdef Request irecv_object(self, object allocate, int source, int tag, Communicator comm):
        """A receive of any size: `allocate(nbytes)` gives the memory once the message is matched."""
        raise NotImplementedError

    cdef object recv_object(self, object allocate, int source, int tag, Communicator comm, StatusRecord *status):
        cdef Request request = self.irecv_object(allocate, source, tag, comm)
        request.operation = RECV
        return wait_for_object(request, status)

    def seen(self, int source, int tag, Communicator comm):
        """(source, tag, bytes) of the oldest message that a receive would take, or None; what the probes of a PML in plain
        Python ask."""
        raise NotImplementedError

    cdef bint iprobe(self, int source, int tag, Communicator comm, StatusRecord *status) except -1:
        progress_or_yield()
        found = self.seen(source, tag, comm)
        if found is None:
            return False
        if status != NULL:
            set_empty(status)
            status.source, status.tag, status.nbytes = found
        return True

    cdef int probe(self, int source, int tag, Communicator comm, StatusRecord *status) except -1:
        cdef Request shown = Request()
        cdef Probe state = Probe(<void *> self, <void *> comm, source, tag)
        shown.operation = PROBE
        shown.peer = source
        shown.tag = tag
        shown.communicator = comm
        wait_until(message_is_there, &state, shown)
        self.iprobe(source, tag, comm, status)
        return 0

    cpdef Message improbe(self, int source, int tag, Communicator comm):
        """Take a message out of the queues, or None (MPI-4.1, 3.8.2)."""
        raise NotImplementedError

    cpdef Message mprobe(self, int source, int tag, Communicator comm):
        """Wait for a message and take it out of the queues; here by `probe` and `improbe`."""
        cdef Message message = None
        while message is None:                   # another thread may be quicker
            self.probe(source, tag, comm, NULL)
            message = self.improbe(source, tag, comm)
        return message

    cpdef Request imrecv(self, size_t address, Py_ssize_t count, Typemap typemap, Message message):
        """Receive a message that was taken out (MPI-4.1, 3.8.3)."""
        raise NotImplementedError

    cpdef Request imrecv_object(self, object allocate, Message message):
        """The same into memory that `allocate(nbytes)` makes."""
        raise NotImplementedError

    cpdef dict dump(self, Communicator comm):
        """The posted and unexpected queues, for people."""
        return {}

    cpdef int finalize(self) except -1:
        """Complete what was sent, then leave nothing behind."""
        return 0

    cpdef int close(self) except -1:
        """Every rank has finalised."""
        return 0

    cpdef dict cards(self):
        """Entries for this process's card."""
        return {}


cdef object wait_for_object(Request request, StatusRecord *status):
    cdef object block, error
    if not request.complete:
        try:
            wait(request)
        except BaseException:
            request.abandon(request)             # its memory is its own
            raise
    # The buffer leaves the request before that goes back to its pool.
    block = request.buffer
    error = request.conclude(status)
    if error is not None:
        raise error
    return block


cpdef Pml chosen():
    """The PML of this process, or None before it is chosen."""
    return pml


cpdef int choose(Pml module) except -1:
    """Set the PML of this process."""
    global pml, closed
    pml = module
    closed = None
    return 0


cdef class ClosedPml(Pml):
    """What stands in the PML's place once there is none any more: each call raises the reason."""

    cdef object refuse(self):
        raise MPIError(ERR_OTHER, closed)

    cpdef int add_comm(self, Communicator comm) except -1:
        self.refuse()
        return 0

    cpdef int del_comm(self, Communicator comm) except -1:
        return 0

    cpdef Request isend(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                        Communicator comm):
        return self.refuse()

    cpdef Request isend_init(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                             Communicator comm):
        return self.refuse()

    cpdef Request irecv(self, size_t address, Py_ssize_t count, Typemap typemap, int source, int tag, Communicator comm):
        return self.refuse()

    cpdef Request irecv_init(self, size_t address, Py_ssize_t count, Typemap typemap, int source, int tag,
                             Communicator comm):
        return self.refuse()

    cpdef Request irecv_object(self, object allocate, int source, int tag, Communicator comm):
        return self.refuse()

    def seen(self, int source, int tag, Communicator comm):
        return self.refuse()

    cpdef Message improbe(self, int source, int tag, Communicator comm):
        return self.refuse()

    cpdef Request imrecv(self, size_t address, Py_ssize_t count, Typemap typemap, Message message):
        return self.refuse()

    cpdef Request imrecv_object(self, object allocate, Message message):
        return self.refuse()


cpdef int close(str reason) except -1:
    """There is no PML in this process any more: whoever calls it, and whoever looks at `closed` first, is told the reason."""
    global pml, closed
    pml = ClosedPml("closed")
    closed = reason
    return 0
