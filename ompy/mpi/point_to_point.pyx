# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: extra_compile_args=-O3
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
"""Point-to-point communication (MPI-4.1, chapters 3 and 4).

Upper-case methods send and receive memory, which is given in any form of `buffers.pxd`; lower-case methods send and
receive Python objects.  A blocking call on the fast path is: arguments, specification on the stack, PML.
"""

from libc.string cimport memcpy

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport (
    ANY_SOURCE,
    ANY_TAG,
    MODE_BUFFERED,
    MODE_READY,
    MODE_STANDARD,
    MODE_SYNCHRONOUS,
    PROC_NULL,
)
from ompy.core.convertor cimport pack_all
from ompy.core.request cimport CompletedRequest
from ompy.core.request cimport Request as CoreRequest
from ompy.core.status cimport StatusRecord, set_empty
from ompy.core.typemap cimport Typemap, predefined
from ompy.mca.pml cimport Message as CoreMessage
from ompy.mca.pml cimport pml
from ompy.mpi.buffered cimport attach, attached, buffered_init, detach, send_buffered
from ompy.mpi.buffers cimport Spec, keep, parse_recv, parse_send, release
from ompy.mpi.combined cimport combine
from ompy.mpi.handle cimport Handle
from ompy.mpi.memory cimport allocate_buffer, buffer
from ompy.mpi.message cimport Message, load_received, new_message, nothing_received
from ompy.mpi.partitioned cimport new_channel, new_partitioned
from ompy.mpi.pickling cimport Parcel, unwrap, wrap, wrap_pickle, wrap_snapshot, write_plain
from ompy.mpi.plain cimport PLAIN_ROOM
from ompy.mpi.request cimport (
    Prequest,
    Request,
    end_call,
    end_object_call,
    new_object_request,
    new_prequest,
    new_request,
)
from ompy.mpi.status cimport Status, record_of

from _thread import allocate_lock

from ompy.core.errors import ERR_ARG, ERR_COMM, ERR_RANK, ERR_TAG, MPIError
from ompy.mpi.exceptions import hand_over
from ompy.mpi.pickling import new_block

cdef Typemap byte_typemap = predefined(BASIC_BYTE)

# Parameter `mpi_param_check`: 0 looks at nothing, 1 at what one rank can know.
cdef int check_level = 1


def set_check_level(level):
    """How much of the arguments is checked; the value of the parameter `mpi_param_check`."""
    global check_level
    check_level = level


cdef inline bint is_dest(Communicator comm, int dest, int tag) noexcept:
    return comm is not None and not comm.freed and (check_level < 1 or (
        (0 <= dest < comm.remote_size or dest == PROC_NULL) and 0 <= tag <= pml.tag_upper_bound))


cdef inline bint is_source(Communicator comm, int source, int tag) noexcept:
    return comm is not None and not comm.freed and (check_level < 1 or (
        (0 <= source < comm.remote_size or source == ANY_SOURCE or source == PROC_NULL)
        and (0 <= tag <= pml.tag_upper_bound or tag == ANY_TAG)))


cdef int check_dest(Communicator comm, int dest, int tag) except -1:
    if not is_dest(comm, dest, tag):
        raise wrong_dest(comm, dest, tag)
    return 0


cdef int check_source(Communicator comm, int source, int tag) except -1:
    if not is_source(comm, source, tag):
        raise wrong_source(comm, source, tag)
    return 0


cdef object no_communicator(Communicator comm):
    return MPIError(ERR_COMM, "a communicator expected, not COMM_NULL" if comm is None else
                    "this communicator was freed through another handle")


cdef object wrong_dest(Communicator comm, int dest, int tag):
    if comm is None or comm.freed:
        return no_communicator(comm)
    if dest != PROC_NULL and not 0 <= dest < comm.remote_size:
        return wrong_rank("dest", dest, comm, "PROC_NULL")
    return MPIError(ERR_TAG, f"tag: 0 to {pml.tag_upper_bound} expected, not {tag}")


cdef object wrong_source(Communicator comm, int source, int tag):
    if comm is None or comm.freed:
        return no_communicator(comm)
    if source != PROC_NULL and source != ANY_SOURCE and not 0 <= source < comm.remote_size:
        return wrong_rank("source", source, comm, "ANY_SOURCE or PROC_NULL")
    return MPIError(ERR_TAG, f"tag: 0 to {pml.tag_upper_bound} or ANY_TAG expected, not {tag}")


cdef object wrong_rank(str name, int rank, Communicator comm, str others):
    where = comm.name or "the communicator"
    return MPIError(ERR_RANK, f"{name}: 0 to {comm.remote_size - 1} (the ranks of {where}) or {others} expected, not {rank}")


cdef inline int set_from_nobody(StatusRecord *status) noexcept:
    """The status of a receive from PROC_NULL."""
    if status != NULL:
        set_empty(status)
        status.source = PROC_NULL
    return 0


cdef class PointToPoint(Handle):
    """The point-to-point half of a communicator."""

    # -- blocking

    def Send(self, buf: BufSpec, int dest, int tag=0) -> None:
        """Send a message; may wait until it is received (MPI-4.1, 3.2.1).

        Parameters:
            buf: what to send.
            dest: rank of the receiver in the (remote) group, or PROC_NULL.
            tag: from 0 to the attribute TAG_UB.

        Raises:
            Exception: ERR_RANK, ERR_TAG, ERR_TYPE, ERR_COMM.
            TypeError, ValueError, BufferError: `buf` is no message.
        """
        send(self, buf, dest, tag, MODE_STANDARD)

    def Ssend(self, buf: BufSpec, int dest, int tag=0) -> None:
        """Send in synchronous mode: returns when the receive has begun (MPI-4.1, 3.4).  As `Send` otherwise."""
        send(self, buf, dest, tag, MODE_SYNCHRONOUS)

    def Rsend(self, buf: BufSpec, int dest, int tag=0) -> None:
        """Send in ready mode: the receive must have been posted (MPI-4.1, 3.4).  As `Send` otherwise."""
        send(self, buf, dest, tag, MODE_READY)

    def Bsend(self, buf: BufSpec, int dest, int tag=0) -> None:
        """Send in buffered mode: the message is copied to the attached buffer (MPI-4.1, 3.4 and 3.6).  As `Send` otherwise.

        Raises:
            Exception: ERR_BUFFER when no buffer is attached, or it is too small.
        """
        send(self, buf, dest, tag, MODE_BUFFERED)

    def Recv(self, buf: BufSpec, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> None:
        """Wait for a message and receive it (MPI-4.1, 3.2.4).

        Parameters:
            buf: where to put it; may be longer than the message.
            source: rank of the sender in the (remote) group, ANY_SOURCE or PROC_NULL.
            tag: tag of the message, or ANY_TAG.
            status: filled in.

        Raises:
            Exception: ERR_TRUNCATE when the message is longer than `buf`; ERR_RANK, ERR_TAG, ERR_TYPE, ERR_COMM.
            TypeError, ValueError, BufferError: `buf` is no memory to receive into.
        """
        cdef Spec spec
        cdef Communicator comm = self.comm
        try:
            if not is_source(comm, source, tag):
                raise wrong_source(comm, source, tag)
            if source == PROC_NULL:
                set_from_nobody(record_of(status))
                return
            parse_recv(buf, &spec)
            try:
                end_call(pml.recv(spec.address, spec.count, <Typemap> spec.typemap, source, tag, comm, record_of(status)),
                         &spec, None, record_of(status))
            finally:
                release(&spec)
        except MPIError as error:
            failed(self, error)

    def Sendrecv(self, sendbuf: BufSpec, int dest, int sendtag=0, recvbuf: BufSpec | None = None, int source=ANY_SOURCE,
                 int recvtag=ANY_TAG, Status status=None) -> None:
        """Send one message and receive another, without deadlock (MPI-4.1, 3.10)."""
        cdef CoreRequest receive
        try:
            check_dest(self.comm, dest, sendtag)
            receive = begin_receive(self, recvbuf, source, recvtag)
            try:
                send_memory(self.comm, sendbuf, dest, sendtag, MODE_STANDARD)
            except BaseException:
                give_up(receive)
                raise
            end_call(receive, NULL, receive, record_of(status))
        except MPIError as error:
            failed(self, error)

    def Sendrecv_replace(self, buf: BufSpec, int dest, int sendtag=0, int source=ANY_SOURCE, int recvtag=ANY_TAG,
                         Status status=None) -> None:
        """Send a message and receive another into the same memory (MPI-4.1, 3.10)."""
        cdef CoreRequest receive
        cdef object copied
        cdef Py_ssize_t nbytes = 0
        try:
            check_dest(self.comm, dest, sendtag)
            check_source(self.comm, source, recvtag)
            copied = copy_of(buf, dest, source, &nbytes)
            receive = begin_receive(self, buf, source, recvtag)
            try:
                if dest != PROC_NULL:
                    end_call(pml.send(<size_t> (<buffer> copied).view.buf, nbytes, byte_typemap, dest, sendtag, MODE_STANDARD,
                                      self.comm), NULL, copied, NULL)
            except BaseException:
                give_up(receive)
                raise
            end_call(receive, NULL, receive, record_of(status))
        except MPIError as error:
            failed(self, error)

    # -- non-blocking

    def Isend(self, buf: BufSpec, int dest, int tag=0) -> Request:
        """Begin to send a message; `buf` must stay as it is until the request is complete (MPI-4.1, 3.7.2)."""
        return isend(self, buf, dest, tag, MODE_STANDARD)

    def Issend(self, buf: BufSpec, int dest, int tag=0) -> Request:
        """Begin to send in synchronous mode (MPI-4.1, 3.7.2)."""
        return isend(self, buf, dest, tag, MODE_SYNCHRONOUS)

    def Irsend(self, buf: BufSpec, int dest, int tag=0) -> Request:
        """Begin to send in ready mode (MPI-4.1, 3.7.2)."""
        return isend(self, buf, dest, tag, MODE_READY)

    def Ibsend(self, buf: BufSpec, int dest, int tag=0) -> Request:
        """Begin to send in buffered mode (MPI-4.1, 3.7.2)."""
        return isend(self, buf, dest, tag, MODE_BUFFERED)

    def Irecv(self, buf: BufSpec, int source=ANY_SOURCE, int tag=ANY_TAG) -> Request:
        """Begin to receive a message; `buf` must not be used until the request is complete (MPI-4.1, 3.7.2)."""
        try:
            return new_request(begin_receive(self, buf, source, tag), None)
        except MPIError as error:
            failed(self, error)

    def Isendrecv(self, sendbuf: BufSpec, int dest, int sendtag=0, recvbuf: BufSpec | None = None, int source=ANY_SOURCE,
                  int recvtag=ANY_TAG) -> Request:
        """Begin to send one message and to receive another (MPI-4.1, 3.10)."""
        cdef CoreRequest receive, sending
        try:
            check_dest(self.comm, dest, sendtag)
            receive = begin_receive(self, recvbuf, source, recvtag)
            try:
                sending = begin_send(self, sendbuf, dest, sendtag, MODE_STANDARD)
            except BaseException:
                give_up(receive)
                raise
            return new_request(combine([sending, receive], receive, True), None)
        except MPIError as error:
            failed(self, error)

    def Isendrecv_replace(self, buf: BufSpec, int dest, int sendtag=0, int source=ANY_SOURCE, int recvtag=ANY_TAG) -> Request:
        """Begin to send a message and to receive another into the same memory (MPI-4.1, 3.10)."""
        cdef CoreRequest receive, sending
        cdef object copied
        cdef Py_ssize_t nbytes = 0
        try:
            check_dest(self.comm, dest, sendtag)
            check_source(self.comm, source, recvtag)
            copied = copy_of(buf, dest, source, &nbytes)
            receive = begin_receive(self, buf, source, recvtag)
            if dest == PROC_NULL:
                return new_request(receive, None)
            try:
                sending = pml.isend(<size_t> (<buffer> copied).view.buf, nbytes, byte_typemap, dest, sendtag, MODE_STANDARD,
                                    self.comm)
            except BaseException:
                give_up(receive)
                raise
            if not sending.complete:
                sending.buffer = copied
            return new_request(combine([sending, receive], receive, True), None)
        except MPIError as error:
            failed(self, error)

    # -- probe

    def Probe(self, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> bool:
        """Wait until a message can be received; `status` tells which (MPI-4.1, 3.8.1).  Always True."""
        return probe(self, source, tag, status)

    def Iprobe(self, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> bool:
        """Whether a message can be received; `status` tells which (MPI-4.1, 3.8.1)."""
        return iprobe(self, source, tag, status)

    def Mprobe(self, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> Message:
        """Wait for a message and take it out of the queues (MPI-4.1, 3.8.2)."""
        return mprobe(self, source, tag, status)

    def Improbe(self, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> Message | None:
        """Take a message out of the queues, if there is one (MPI-4.1, 3.8.2)."""
        return improbe(self, source, tag, status)

    # -- persistent

    def Send_init(self, buf: BufSpec, int dest, int tag=0) -> Prequest:
        """A persistent send, not started (MPI-4.1, 3.9)."""
        return send_init(self, buf, dest, tag, MODE_STANDARD)

    def Ssend_init(self, buf: BufSpec, int dest, int tag=0) -> Prequest:
        """A persistent send in synchronous mode, not started (MPI-4.1, 3.9)."""
        return send_init(self, buf, dest, tag, MODE_SYNCHRONOUS)

    def Rsend_init(self, buf: BufSpec, int dest, int tag=0) -> Prequest:
        """A persistent send in ready mode, not started (MPI-4.1, 3.9)."""
        return send_init(self, buf, dest, tag, MODE_READY)

    def Bsend_init(self, buf: BufSpec, int dest, int tag=0) -> Prequest:
        """A persistent send in buffered mode, not started (MPI-4.1, 3.9)."""
        return send_init(self, buf, dest, tag, MODE_BUFFERED)

    def Recv_init(self, buf: BufSpec, int source=ANY_SOURCE, int tag=ANY_TAG) -> Prequest:
        """A persistent receive, not started (MPI-4.1, 3.9)."""
        return recv_init(self, buf, source, tag)

    def Psend_init(self, buf: BufSpec, int partitions, int dest, int tag=0, info=None) -> Prequest:
        """A partitioned send, not started (MPI-4.1, 4.2.1).

        Parameters:
            buf: what to send; a count that is given is that of one partition, else the buffer is cut into equal parts.
            partitions: how many parts `Pready` will name.
        """
        cdef Spec spec
        try:
            check_dest(self.comm, dest, tag)
            check_partitions(partitions)
            if dest == PROC_NULL:
                return new_prequest(new_partitioned(partitions, True), None)
            parse_send(buf, &spec, partitions)
            try:
                return new_prequest(new_channel(partitions, True, spec.address, spec.count * partitions, <Typemap> spec.typemap,
                                                dest, tag, self.comm), keep(&spec))
            finally:
                release(&spec)
        except MPIError as error:
            failed(self, error)

    def Precv_init(self, buf: BufSpec, int partitions, int source=ANY_SOURCE, int tag=ANY_TAG, info=None) -> Prequest:
        """A partitioned receive, not started (MPI-4.1, 4.2.1).  Source and tag must be named, as MPI has no wildcards here."""
        cdef Spec spec
        try:
            check_source(self.comm, source, tag)
            check_partitions(partitions)
            if source == PROC_NULL:
                return new_prequest(new_partitioned(partitions, False), None)
            if source == ANY_SOURCE or tag == ANY_TAG:
                raise MPIError(ERR_ARG, "source, tag: a partitioned receive takes no wildcards")
            parse_recv(buf, &spec, partitions)
            try:
                return new_prequest(new_channel(partitions, False, spec.address, spec.count * partitions,
                                                <Typemap> spec.typemap, source, tag, self.comm), keep(&spec))
            finally:
                release(&spec)
        except MPIError as error:
            failed(self, error)

    # -- memory for buffered mode

    def Attach_buffer(self, buf: Buffer | None) -> None:
        """Attach memory for this communicator's sends in buffered mode (MPI-4.1, 3.6)."""
        attach(attributes_of(self), buf)

    def Detach_buffer(self) -> Buffer | None:
        """Wait until all messages have left the communicator's buffer, and give it back (MPI-4.1, 3.6)."""
        return detach(attributes_of(self))

    def Flush_buffer(self) -> None:
        """Wait until all messages have left the communicator's buffer (MPI-4.1, 3.6)."""
        attached(attributes_of(self)).flush()

    def Iflush_buffer(self) -> Request:
        """A request that is complete when all messages have left the communicator's buffer (MPI-4.1, 3.6)."""
        return new_request(attached(attributes_of(self)).iflush(), None)

    # -- objects

    def send(self, obj: object, int dest, int tag=0) -> None:
        """Send an object; may wait until it is received (MPI-4.1, 3.2.1)."""
        send_object(self, obj, dest, tag, MODE_STANDARD)

    def ssend(self, obj: object, int dest, int tag=0) -> None:
        """Send an object in synchronous mode: returns when the receive has begun (MPI-4.1, 3.4)."""
        send_object(self, obj, dest, tag, MODE_SYNCHRONOUS)

    def bsend(self, obj: object, int dest, int tag=0) -> None:
        """Send an object in buffered mode: it is copied to the attached buffer (MPI-4.1, 3.4)."""
        send_object(self, obj, dest, tag, MODE_BUFFERED)

    def recv(self, buf: Buffer | None = None, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> object:
        """Wait for an object of any size, and return it (MPI-4.1, 3.2.4).

        Parameters:
            buf: memory to receive the pickle into; of no use any more, and deprecated as in mpi4py.
        """
        if buf is not None:
            from warnings import warn
            warn("the 'buf' argument is deprecated", UserWarning, stacklevel=2)
        return receive_object(self, buf, source, tag, status)

    def isend(self, obj: object, int dest, int tag=0) -> Request:
        """Begin to send an object as it is now (MPI-4.1, 3.7.2).  A large array is copied; `Isend` copies nothing."""
        return isend_object(self, obj, dest, tag, MODE_STANDARD)

    def issend(self, obj: object, int dest, int tag=0) -> Request:
        """Begin to send an object in synchronous mode (MPI-4.1, 3.7.2)."""
        return isend_object(self, obj, dest, tag, MODE_SYNCHRONOUS)

    def ibsend(self, obj: object, int dest, int tag=0) -> Request:
        """Begin to send an object in buffered mode (MPI-4.1, 3.7.2)."""
        return isend_object(self, obj, dest, tag, MODE_BUFFERED)

    def irecv(self, buf: Buffer | None = None, int source=ANY_SOURCE, int tag=ANY_TAG) -> Request:
        """Begin to receive an object of any size, which the request's `wait` returns (MPI-4.1, 3.7.2).

        Parameters:
            buf: memory to receive the pickle into; not needed, its memory is made when the message is matched.
        """
        try:
            return begin_receive_object(self, buf, source, tag)
        except MPIError as error:
            failed(self, error)

    def sendrecv(self, sendobj: object, int dest, int sendtag=0, recvbuf: Buffer | None = None, int source=ANY_SOURCE,
                 int recvtag=ANY_TAG, Status status=None) -> object:
        """Send one object and receive another, without deadlock (MPI-4.1, 3.10)."""
        cdef Request receive
        try:
            check_dest(self.comm, dest, sendtag)
            receive = begin_receive_object(self, recvbuf, source, recvtag)
            try:
                send_parcel(self, sendobj, dest, sendtag, MODE_STANDARD)
            except BaseException:
                give_up(receive.request)
                raise
        except MPIError as error:
            failed(self, error)
        return end_object_call(receive, status)

    def probe(self, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> bool:
        """Wait until an object can be received; `status` tells from whom.  Always True (MPI-4.1, 3.8.1)."""
        return probe(self, source, tag, status)

    def iprobe(self, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> bool:
        """Whether an object can be received; `status` tells from whom (MPI-4.1, 3.8.1)."""
        return iprobe(self, source, tag, status)

    def mprobe(self, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> Message:
        """Wait for an object's message and take it out of the queues (MPI-4.1, 3.8.2)."""
        return mprobe(self, source, tag, status)

    def improbe(self, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> Message | None:
        """Take an object's message out of the queues, if there is one (MPI-4.1, 3.8.2)."""
        return improbe(self, source, tag, status)


cdef int failed(PointToPoint self, object error) except -1:
    hand_over(error, self.comm)
    return 0


cdef dict attributes_of(PointToPoint self):
    if self.comm is None or self.comm.freed:
        failed(self, no_communicator(self.comm))
    return self.comm.attributes


cdef object lock_of(Communicator comm, object key):
    cdef dict locks = comm.attributes.setdefault("locks", {})
    lock = locks.get(key)
    return locks.setdefault(key, allocate_lock()) if lock is None else lock


def _comm_lock(PointToPoint comm not None, key: Hashable | None = None) -> LockType:
    """The lock of a communicator that goes by the key; made at first use."""
    attributes_of(comm)                          # there must be a communicator
    return lock_of(comm.comm, key)


def _comm_lock_table(PointToPoint comm not None) -> dict[Hashable, LockType]:
    """The locks of a communicator, by key."""
    return attributes_of(comm).setdefault("locks", {})


cdef int check_partitions(int partitions) except -1:
    if partitions < 0:
        raise MPIError(ERR_ARG, f"partitions: a number of parts expected, not {partitions}")
    return 0


# -- memory

cdef inline int send(PointToPoint self, object buf, int dest, int tag, int mode) except -1:
    cdef Communicator comm = self.comm
    try:
        if not is_dest(comm, dest, tag):
            raise wrong_dest(comm, dest, tag)
        send_memory(comm, buf, dest, tag, mode)
    except MPIError as error:
        failed(self, error)
    return 0


cdef inline int send_memory(Communicator comm, object buf, int dest, int tag, int mode) except -1:
    cdef Spec spec
    if dest == PROC_NULL:
        return 0
    parse_send(buf, &spec)
    try:
        if mode == MODE_BUFFERED:
            send_buffered(spec.address, spec.count, <Typemap> spec.typemap, dest, tag, comm)
        else:
            end_call(pml.send(spec.address, spec.count, <Typemap> spec.typemap, dest, tag, mode, comm), &spec, None, NULL)
    finally:
        release(&spec)
    return 0


cdef Request isend(PointToPoint self, object buf, int dest, int tag, int mode):
    try:
        check_dest(self.comm, dest, tag)
        return new_request(begin_send(self, buf, dest, tag, mode), None)
    except MPIError as error:
        failed(self, error)


cdef CoreRequest begin_send(PointToPoint self, object buf, int dest, int tag, int mode):
    cdef Spec spec
    cdef CoreRequest request
    if dest == PROC_NULL:
        return CompletedRequest.__new__(CompletedRequest)
    parse_send(buf, &spec)
    try:
        if mode == MODE_BUFFERED:
            send_buffered(spec.address, spec.count, <Typemap> spec.typemap, dest, tag, self.comm)
            return CompletedRequest.__new__(CompletedRequest)
        pml.deferrable = True
        request = pml.isend(spec.address, spec.count, <Typemap> spec.typemap, dest, tag, mode, self.comm)
        if not request.complete:
            request.buffer = keep(&spec)
    finally:
        release(&spec)
    return request


cdef CoreRequest begin_receive(PointToPoint self, object buf, int source, int tag):
    cdef Spec spec
    cdef CoreRequest request
    check_source(self.comm, source, tag)
    if source == PROC_NULL:
        return nothing_received()
    parse_recv(buf, &spec)
    try:
        request = pml.irecv(spec.address, spec.count, <Typemap> spec.typemap, source, tag, self.comm)
        if not request.complete:
            request.buffer = keep(&spec)
    finally:
        release(&spec)
    return request


cdef int give_up(CoreRequest receive) except -1:
    """The call that this receive belongs to has failed; the program's memory is the request's as long as it is used."""
    return receive.abandon(receive)


cdef object copy_of(object buf, int dest, int source, Py_ssize_t *nbytes):
    """The packed data of a message, which is about to be overwritten."""
    cdef Spec spec
    cdef Typemap typemap
    cdef buffer copied
    if dest == PROC_NULL:
        return None
    parse_recv(buf, &spec)
    try:
        typemap = <Typemap> spec.typemap
        nbytes[0] = spec.count * typemap.size
        copied = allocate_buffer(nbytes[0], False)
        if typemap.contiguous:
            memcpy(copied.view.buf, <void *> spec.address, <size_t> nbytes[0])
        else:
            pack_all(<char *> spec.address, spec.count, typemap, <char *> copied.view.buf)
    finally:
        release(&spec)
    return copied


cdef class NothingToDo(CoreRequest):
    """A persistent operation with PROC_NULL."""

    cdef bint receives

    cpdef int start(self) except -1:
        self.begin()
        if self.receives:
            self.status.source = PROC_NULL
        return self.finish()


cdef CoreRequest nothing_to_do(bint receives):
    cdef NothingToDo request = NothingToDo.__new__(NothingToDo)
    request.persistent = True
    request.receives = receives
    return request


cdef Prequest send_init(PointToPoint self, object buf, int dest, int tag, int mode):
    cdef Spec spec
    cdef CoreRequest request
    try:
        check_dest(self.comm, dest, tag)
        if dest == PROC_NULL:
            return new_prequest(nothing_to_do(False), None)
        parse_send(buf, &spec)
        try:
            if mode == MODE_BUFFERED:
                request = buffered_init(spec.address, spec.count, <Typemap> spec.typemap, dest, tag, self.comm)
            else:
                request = pml.isend_init(spec.address, spec.count, <Typemap> spec.typemap, dest, tag, mode, self.comm)
            return new_prequest(request, keep(&spec))
        finally:
            release(&spec)
    except MPIError as error:
        failed(self, error)


cdef Prequest recv_init(PointToPoint self, object buf, int source, int tag):
    cdef Spec spec
    cdef CoreRequest request
    try:
        check_source(self.comm, source, tag)
        if source == PROC_NULL:
            return new_prequest(nothing_to_do(True), None)
        parse_recv(buf, &spec)
        try:
            request = pml.irecv_init(spec.address, spec.count, <Typemap> spec.typemap, source, tag, self.comm)
            return new_prequest(request, keep(&spec))
        finally:
            release(&spec)
    except MPIError as error:
        failed(self, error)


# -- probe

cdef bint probe(PointToPoint self, int source, int tag, Status status) except -1:
    try:
        check_source(self.comm, source, tag)
        if source == PROC_NULL:
            set_from_nobody(record_of(status))
        else:
            pml.probe(source, tag, self.comm, record_of(status))
    except MPIError as error:
        failed(self, error)
    return True


cdef bint iprobe(PointToPoint self, int source, int tag, Status status) except -1:
    try:
        check_source(self.comm, source, tag)
        if source == PROC_NULL:
            set_from_nobody(record_of(status))
            return True
        return pml.iprobe(source, tag, self.comm, record_of(status))
    except MPIError as error:
        failed(self, error)


cdef Message mprobe(PointToPoint self, int source, int tag, Status status):
    cdef CoreMessage message
    try:
        check_source(self.comm, source, tag)
        if source == PROC_NULL:
            set_from_nobody(record_of(status))
            return new_message(None)
        message = pml.mprobe(source, tag, self.comm)
    except MPIError as error:
        failed(self, error)
    if status is not None:
        status.record = message.status
    return new_message(message)


cdef Message improbe(PointToPoint self, int source, int tag, Status status):
    cdef CoreMessage message
    try:
        check_source(self.comm, source, tag)
        if source == PROC_NULL:
            set_from_nobody(record_of(status))
            return new_message(None)
        message = pml.improbe(source, tag, self.comm)
    except MPIError as error:
        failed(self, error)
    if message is None:
        return None
    if status is not None:
        status.record = message.status
    return new_message(message)


# -- objects

cdef int send_object(PointToPoint self, object obj, int dest, int tag, int mode) except -1:
    try:
        check_dest(self.comm, dest, tag)
        send_parcel(self, obj, dest, tag, mode)
    except MPIError as error:
        failed(self, error)
    return 0


cdef int send_parcel(PointToPoint self, object obj, int dest, int tag, int mode) except -1:
    cdef Parcel parcel
    cdef char room[PLAIN_ROOM]
    cdef Py_ssize_t length
    if dest == PROC_NULL:
        return 0
    if mode == MODE_BUFFERED:
        parcel = wrap(obj)
        send_buffered(parcel.address, parcel.count, parcel.typemap, dest, tag, self.comm)
        return 0
    length = write_plain(obj, room)
    if length:
        end_call(pml.send(<size_t> &room[0], length, byte_typemap, dest, tag, mode, self.comm), NULL, None, NULL)
    else:
        parcel = wrap_pickle(obj)
        end_call(pml.send(parcel.address, parcel.count, parcel.typemap, dest, tag, mode, self.comm), NULL, parcel, NULL)
    return 0


cdef Request isend_object(PointToPoint self, object obj, int dest, int tag, int mode):
    cdef Parcel parcel
    cdef CoreRequest request
    try:
        check_dest(self.comm, dest, tag)
        if dest == PROC_NULL:
            return new_request(CompletedRequest.__new__(CompletedRequest), None)
        if mode == MODE_BUFFERED:
            parcel = wrap(obj)
            send_buffered(parcel.address, parcel.count, parcel.typemap, dest, tag, self.comm)
            return new_request(CompletedRequest.__new__(CompletedRequest), None)
        parcel = wrap_snapshot(obj)
        pml.deferrable = True
        request = pml.isend(parcel.address, parcel.count, parcel.typemap, dest, tag, mode, self.comm)
        return new_request(request, parcel)
    except MPIError as error:
        failed(self, error)


cdef object receive_object(PointToPoint self, object buf, int source, int tag, Status status):
    cdef Communicator comm = self.comm
    cdef object block = None
    if buf is not None or source == PROC_NULL:
        return receive_object_by_request(self, buf, source, tag, status)
    try:
        check_source(comm, source, tag)
        block = pml.recv_object(new_block, source, tag, comm, record_of(status))
    except MPIError as error:
        failed(self, error)
    return unwrap(block)


cdef object receive_object_by_request(PointToPoint self, object buf, int source, int tag, Status status):
    cdef Request request
    try:
        request = begin_receive_object(self, buf, source, tag)
    except MPIError as error:
        failed(self, error)
    return end_object_call(request, status)


cdef Request begin_receive_object(PointToPoint self, object buf, int source, int tag):
    cdef CoreRequest request
    cdef buffer memory
    check_source(self.comm, source, tag)
    if source == PROC_NULL:
        return new_request(nothing_received(), None)
    # A number was the size of the memory to make: there is no need to know it any more.
    if buf is None or isinstance(buf, int):
        request = pml.irecv_object(new_block, source, tag, self.comm)
        return new_object_request(request, None, load_received)
    memory = buffer.frombuffer(buf)
    request = pml.irecv(<size_t> memory.view.buf, memory.view.len, byte_typemap, source, tag, self.comm)
    request.buffer = memory
    return new_object_request(request, memory, load_from_memory)


cdef object load_from_memory(CoreRequest core, object kept):
    return unwrap((<buffer> kept)[:core.status.nbytes])
