# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Base classes of matching transport layers.  The contract is in `mtl.pxd`."""
from time import monotonic

from cpython.mem cimport PyMem_Free, PyMem_Malloc

from ompy.core.board cimport FINALIZE
from ompy.core.constants cimport ANY_SOURCE, OUT_OF_RESOURCE, TAG_UPPER_BOUND
from ompy.core.convertor cimport pack_all
from ompy.core.owner cimport enter, leave
from ompy.core.proc cimport failures
from ompy.core.memory import view
from ompy.core.progress cimport wait_until
from ompy.core.request cimport Request, wait_uninterrupted

interface = INTERFACE

# Seconds in which nothing leaves, after which the end does not wait for what is left.
cdef double PATIENCE = 10


cpdef object loss(Communicator comm, int source):
    """The failure of whoever a message from `source` (ANY_SOURCE: from anybody else) would be from; None while one can come."""
    cdef int rank
    if failures == 0:
        return None
    if source != ANY_SOURCE:
        return comm.peer(source).failure
    failure = None
    for rank in range(comm.remote_size):
        if comm.is_inter or rank != comm.rank:
            failure = comm.peer(rank).failure
            if failure is None:
                return None
    return failure


cdef struct Departures:
    Remainder remainder
    void *context
    uint64_t left                                # when it was last looked at
    double end                                   # of our patience


cdef bint are_over(void *context) except -1:
    cdef Departures *state = <Departures *> context
    cdef uint64_t left = state.remainder(state.context)
    if left == 0:
        return True
    if left != state.left:
        state.left = left
        state.end = monotonic() + PATIENCE
    return monotonic() >= state.end


cdef int wait_for_departures(Remainder remainder, void *context) except -1:
    cdef Departures state = Departures(remainder, context, 0, 0)
    cdef Request shown = Request()
    shown.operation = FINALIZE
    shown.peer = ANY_SOURCE
    return wait_until(are_over, &state, shown)


cdef class MtlSend(MessageRequest):
    """A message on its way out."""

    def __dealloc__(self):
        PyMem_Free(self.packed)

    cdef int prepare(self, Mtl mtl, Communicator comm, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag,
                     int mode) except -1:
        self.mtl = mtl
        self.communicator = comm
        self.address = address
        self.count = count
        self.typemap = typemap
        self.peer = dest
        self.tag = tag
        self.mode = mode
        self.length = <uint64_t> (count * typemap.size)
        self.nbytes = self.length
        self.data = <const char *> address
        if not typemap.contiguous and self.length and self.packed == NULL:
            self.packed = <char *> PyMem_Malloc(self.length)
            if self.packed == NULL:
                raise MemoryError(f"no memory to pack {self.length} bytes")
        return 0

    cpdef int start(self) except -1:
        """Hand the message to the MTL."""
        enter()
        try:
            self.begin()
            if self.packed != NULL:
                pack_all(<char *> self.address, self.count, self.typemap, self.packed)
                self.data = self.packed
            return self.mtl.isend(self)
        finally:
            leave()

    cpdef int abandon(self, object memory) except -1:
        """The message goes on from a copy; from where it is, where the MTL can't do otherwise, and that is waited for."""
        cdef bint waits
        enter()
        try:
            if self.complete:
                return self.release()
            self.abandoned = True
            waits = self.packed == NULL and self.length and not self.mtl.set_aside(self)
        finally:
            leave()
        if waits:
            wait_uninterrupted(self)
        return 0

    cdef object set_aside(self):
        copy = MessageRequest.set_aside(self)
        self.data = <const char *> self.address
        return copy

    @property
    def view(self):
        """The message's bytes, for MTLs in Python."""
        return view(<size_t> self.data, self.length, True)


cdef class MtlRecv(MessageRequest):
    """A receive."""

    def __dealloc__(self):
        PyMem_Free(self.packed)

    cdef int prepare(self, Mtl mtl, Communicator comm, size_t address, Py_ssize_t count, Typemap typemap, object allocate,
                     int source, int tag) except -1:
        self.mtl = mtl
        self.communicator = comm
        return self.aim(address, count, typemap, allocate, source, tag)

    cpdef int start(self) except -1:
        """Have the MTL take the oldest message that matches, or wait for one."""
        enter()
        try:
            self.begin()
            self.peer = self.wanted_source
            self.tag = self.wanted_tag
            self.capacity = 0 if self.allocate is not None else <uint64_t> self.nbytes
            self.data = <char *> self.address
            if self.capacity and not self.typemap.contiguous:
                self.data = self.packed_memory(self.capacity)
            return self.mtl.irecv(self)
        finally:
            leave()

    cpdef int cancel(self) except -1:
        """Takes effect as long as nothing was matched (MPI-4.1, 3.8.4)."""
        enter()
        try:
            if not self.complete and self.mtl.withdraw(self):
                self.status.cancelled = True
                self.finish()
        finally:
            leave()
        return 0

    cpdef int abandon(self, object memory) except -1:
        """Take it back, or have the message dropped."""
        enter()
        try:
            if self.complete:
                return self.release()
            self.abandoned = True
            self.convertor = None
            self.cancel()
            if not self.complete:
                self.mtl.forget(self)
        finally:
            leave()
        return 0

    cdef char *packed_memory(self, uint64_t size) except NULL:
        PyMem_Free(self.packed)
        self.packed = <char *> PyMem_Malloc(size)
        if self.packed == NULL:
            raise MemoryError(f"no memory to receive {size} packed bytes")
        return self.packed

    cpdef int deposited(self, int source, int tag, uint64_t length) except -1:
        """As many of the message's `length` bytes as fit are in `data`."""
        self.open(source, tag, length)
        return self.landed()

    cdef int copied(self, int source, int tag, const char *body, uint64_t length) except -1:
        self.take_whole(source, tag, body, length)
        return self.finish()

    cdef char *landing(self, int source, int tag, uint64_t length) except? NULL:
        self.open(source, tag, length)
        if self.convertor is None:
            return <char *> self.address
        return self.packed_memory(self.wanted)

    cdef int landed(self) except -1:
        if self.convertor is not None:
            self.convertor.unpack(self.packed, self.wanted)
        return self.finish()

    @property
    def view(self):
        """Where a message may be put, for MTLs in Python."""
        return view(<size_t> self.data, self.capacity)

    def take(self, int source, int tag, data):
        """A message that lies in the MTL's memory was matched; for MTLs in Python."""
        cdef const unsigned char[::1] body = data
        self.copied(source, tag, <const char *> &body[0] if len(body) else NULL, len(body))


cdef class Mtl:
    """Base of matching transport layers.

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
        return 0

    cpdef int del_comm(self, Communicator comm) except -1:
        """The communicator is gone on this process."""
        return 0

    cpdef int add_proc(self, Proc proc) except -1:
        """First contact with a peer."""
        return 0

    cpdef int del_proc(self, Proc proc) except -1:
        """No more contact with a peer."""
        return 0

    def serves_other_jobs(self):
        """Whether processes of other jobs that this one's job meets can be peers, by their cards."""
        return False

    cpdef MtlSend new_send(self):
        """An empty request of this MTL's own kind."""
        return MtlSend.__new__(MtlSend)

    cpdef MtlRecv new_recv(self):
        """An empty request of this MTL's own kind."""
        return MtlRecv.__new__(MtlRecv)

    cdef int send(self, const char *data, uint64_t length, int dest, int tag, int mode, Communicator comm) except -1:
        return OUT_OF_RESOURCE

    cpdef int isend(self, MtlSend request) except -1:
        """Send; `request.finish` or `fail` when its memory may be used again (synchronous: when it was matched)."""
        raise NotImplementedError

    cpdef bint set_aside(self, MtlSend request) except -1:
        """Look at the program's memory no more, but at a copy; False: the program waits for the end of the send."""
        return False

    cpdef int irecv(self, MtlRecv request) except -1:
        """Receive into `request`."""
        raise NotImplementedError

    cpdef bint withdraw(self, MtlRecv request) except -1:
        """Take a receive back that was not matched."""
        return False

    cpdef int forget(self, MtlRecv request) except -1:
        """Put nothing into the request's memory any more."""
        raise NotImplementedError

    cdef bint iprobe(self, int source, int tag, Communicator comm, StatusRecord *status) except -1:
        cdef tuple found = self.seen(source, tag, comm)
        if found is None:
            return False
        if status != NULL:
            status.source, status.tag, status.nbytes = found
            status.error = 0
            status.cancelled = False
        return True

    cpdef tuple seen(self, int source, int tag, Communicator comm):
        """(source, tag, bytes) of the oldest message that a receive would take, or None."""
        raise NotImplementedError

    cpdef Message improbe(self, int source, int tag, Communicator comm):
        """Take a message out of the queues, or None (MPI-4.1, 3.8.2)."""
        raise NotImplementedError

    cpdef int imrecv(self, MtlRecv request, Message message) except -1:
        """Receive a message that was taken out (MPI-4.1, 3.8.3)."""
        raise NotImplementedError

    cpdef int peer_lost(self, Proc proc) except -1:
        """Contact with a process is lost."""
        return 0

    cpdef dict dump(self, Communicator comm):
        """The posted and unexpected queues, for people."""
        return {}

    cpdef dict statistics(self):
        """Counters by name."""
        return {}

    cpdef int finalize(self) except -1:
        """Get out what was sent."""
        return 0

    cpdef int close(self) except -1:
        """Every rank has finalised."""
        return 0

    cpdef dict cards(self):
        """Entries for this process's card."""
        return {}
