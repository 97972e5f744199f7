# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: extra_compile_args=-O3
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
"""Point-to-point communication (MPI-4.1, chapters 3 and 4).

Upper-case methods send and receive memory, which is given in any form of `buffers.pxd`; lower-case methods send and
receive Python objects.  A blocking call on the fast path is: arguments, specification on the stack, PML.
"""

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
from ompy.core.request cimport Request as CoreRequest
from ompy.core.typemap cimport Typemap
from ompy.mca.pml cimport Message as CoreMessage
from ompy.mca.pml cimport pml
from ompy.mpi.buffered cimport attach, attached, detach
from ompy.mpi.buffers cimport Spec, keep, parse_recv, parse_send, release
from ompy.mpi.combined cimport combine
from ompy.mpi.completion cimport end_call, end_object_call
from ompy.mpi.envelope cimport check_dest, check_source, is_source, no_communicator, set_from_nobody, wrong_source
from ompy.mpi.handle cimport Handle
from ompy.mpi.memory cimport buffer
from ompy.mpi.memory_messages cimport (
    begin_both, begin_receive, byte_typemap, copy_of, give_up, isend, recv_init, send, send_and_begin_receive, send_init,
)
from ompy.mpi.message cimport Message, new_message
from ompy.mpi.object_messages cimport begin_receive_object, isend_object, receive_object, send_object
from ompy.mpi.partitioned cimport new_channel, new_partitioned
from ompy.mpi.pickling cimport Parcel, wrap
from ompy.mpi.request cimport Prequest, Request, new_prequest, new_request
from ompy.mpi.status cimport Status, record_of

from _thread import allocate_lock

from ompy.core.errors import ERR_ARG, MPIError
from ompy.mpi.raising import hand_over


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
        send(self.comm, buf, dest, tag, MODE_STANDARD)

    def Ssend(self, buf: BufSpec, int dest, int tag=0) -> None:
        """Send in synchronous mode: returns when the receive has begun (MPI-4.1, 3.4).  As `Send` otherwise."""
        send(self.comm, buf, dest, tag, MODE_SYNCHRONOUS)

    def Rsend(self, buf: BufSpec, int dest, int tag=0) -> None:
        """Send in ready mode: the receive must have been posted (MPI-4.1, 3.4).  As `Send` otherwise."""
        send(self.comm, buf, dest, tag, MODE_READY)

    def Bsend(self, buf: BufSpec, int dest, int tag=0) -> None:
        """Send in buffered mode: the message is copied to the attached buffer (MPI-4.1, 3.4 and 3.6).  As `Send` otherwise.

        Raises:
            Exception: ERR_BUFFER when no buffer is attached, or it is too small.
        """
        send(self.comm, buf, dest, tag, MODE_BUFFERED)

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
            hand_over(error, self.comm)

    def Sendrecv(self, sendbuf: BufSpec, int dest, int sendtag=0, recvbuf: BufSpec | None = None, int source=ANY_SOURCE,
                 int recvtag=ANY_TAG, Status status=None) -> None:
        """Send one message and receive another, without deadlock (MPI-4.1, 3.10)."""
        cdef CoreRequest receive
        try:
            check_dest(self.comm, dest, sendtag)
            check_source(self.comm, source, recvtag)
            receive = send_and_begin_receive(self.comm, sendbuf, dest, sendtag, recvbuf, source, recvtag)
            end_call(receive, NULL, receive, record_of(status))
        except MPIError as error:
            hand_over(error, self.comm)

    def Sendrecv_replace(self, buf: BufSpec, int dest, int sendtag=0, int source=ANY_SOURCE, int recvtag=ANY_TAG,
                         Status status=None) -> None:
        """Send a message and receive another into the same memory (MPI-4.1, 3.10)."""
        cdef CoreRequest receive
        cdef object copied
        cdef Py_ssize_t nbytes = 0
        try:
            check_dest(self.comm, dest, sendtag)
            check_source(self.comm, source, recvtag)
            copied = copy_of(buf, dest, &nbytes)
            receive = begin_receive(self.comm, buf, source, recvtag)
            try:
                if dest != PROC_NULL:
                    end_call(pml.send(<size_t> (<buffer> copied).view.buf, nbytes, byte_typemap, dest, sendtag, MODE_STANDARD,
                                      self.comm), NULL, copied, NULL)
            except BaseException:
                give_up(receive)
                raise
            end_call(receive, NULL, receive, record_of(status))
        except MPIError as error:
            hand_over(error, self.comm)

    # -- non-blocking

    def Isend(self, buf: BufSpec, int dest, int tag=0) -> Request:
        """Begin to send a message; `buf` must stay as it is until the request is complete (MPI-4.1, 3.7.2)."""
        return isend(self.comm, buf, dest, tag, MODE_STANDARD)

    def Issend(self, buf: BufSpec, int dest, int tag=0) -> Request:
        """Begin to send in synchronous mode (MPI-4.1, 3.7.2)."""
        return isend(self.comm, buf, dest, tag, MODE_SYNCHRONOUS)

    def Irsend(self, buf: BufSpec, int dest, int tag=0) -> Request:
        """Begin to send in ready mode (MPI-4.1, 3.7.2)."""
        return isend(self.comm, buf, dest, tag, MODE_READY)

    def Ibsend(self, buf: BufSpec, int dest, int tag=0) -> Request:
        """Begin to send in buffered mode (MPI-4.1, 3.7.2)."""
        return isend(self.comm, buf, dest, tag, MODE_BUFFERED)

    def Irecv(self, buf: BufSpec, int source=ANY_SOURCE, int tag=ANY_TAG) -> Request:
        """Begin to receive a message; `buf` must not be used until the request is complete (MPI-4.1, 3.7.2)."""
        try:
            return new_request(begin_receive(self.comm, buf, source, tag), None)
        except MPIError as error:
            hand_over(error, self.comm)

    def Isendrecv(self, sendbuf: BufSpec, int dest, int sendtag=0, recvbuf: BufSpec | None = None, int source=ANY_SOURCE,
                  int recvtag=ANY_TAG) -> Request:
        """Begin to send one message and to receive another (MPI-4.1, 3.10)."""
        try:
            check_dest(self.comm, dest, sendtag)
            check_source(self.comm, source, recvtag)
            return new_request(begin_both(self.comm, sendbuf, dest, sendtag, recvbuf, source, recvtag), None)
        except MPIError as error:
            hand_over(error, self.comm)

    def Isendrecv_replace(self, buf: BufSpec, int dest, int sendtag=0, int source=ANY_SOURCE, int recvtag=ANY_TAG) -> Request:
        """Begin to send a message and to receive another into the same memory (MPI-4.1, 3.10)."""
        cdef CoreRequest receive, sending
        cdef object copied
        cdef Py_ssize_t nbytes = 0
        try:
            check_dest(self.comm, dest, sendtag)
            check_source(self.comm, source, recvtag)
            copied = copy_of(buf, dest, &nbytes)
            receive = begin_receive(self.comm, buf, source, recvtag)
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
            hand_over(error, self.comm)

    # -- probe

    def Probe(self, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> bool:
        """Wait until a message can be received; `status` tells which (MPI-4.1, 3.8.1).  Always True."""
        return probe(self.comm, source, tag, status)

    def Iprobe(self, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> bool:
        """Whether a message can be received; `status` tells which (MPI-4.1, 3.8.1)."""
        return iprobe(self.comm, source, tag, status)

    def Mprobe(self, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> Message:
        """Wait for a message and take it out of the queues (MPI-4.1, 3.8.2)."""
        return mprobe(self.comm, source, tag, status)

    def Improbe(self, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> Message | None:
        """Take a message out of the queues, if there is one (MPI-4.1, 3.8.2)."""
        return improbe(self.comm, source, tag, status)

    # -- persistent

    def Send_init(self, buf: BufSpec, int dest, int tag=0) -> Prequest:
        """A persistent send, not started (MPI-4.1, 3.9)."""
        return send_init(self.comm, buf, dest, tag, MODE_STANDARD)

    def Ssend_init(self, buf: BufSpec, int dest, int tag=0) -> Prequest:
        """A persistent send in synchronous mode, not started (MPI-4.1, 3.9)."""
        return send_init(self.comm, buf, dest, tag, MODE_SYNCHRONOUS)

    def Rsend_init(self, buf: BufSpec, int dest, int tag=0) -> Prequest:
        """A persistent send in ready mode, not started (MPI-4.1, 3.9)."""
        return send_init(self.comm, buf, dest, tag, MODE_READY)

    def Bsend_init(self, buf: BufSpec, int dest, int tag=0) -> Prequest:
        """A persistent send in buffered mode, not started (MPI-4.1, 3.9)."""
        return send_init(self.comm, buf, dest, tag, MODE_BUFFERED)

    def Recv_init(self, buf: BufSpec, int source=ANY_SOURCE, int tag=ANY_TAG) -> Prequest:
        """A persistent receive, not started (MPI-4.1, 3.9)."""
        return recv_init(self.comm, buf, source, tag)

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
            hand_over(error, self.comm)

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
            hand_over(error, self.comm)

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
        send_object(self.comm, obj, dest, tag, MODE_STANDARD)

    def ssend(self, obj: object, int dest, int tag=0) -> None:
        """Send an object in synchronous mode: returns when the receive has begun (MPI-4.1, 3.4)."""
        send_object(self.comm, obj, dest, tag, MODE_SYNCHRONOUS)

    def bsend(self, obj: object, int dest, int tag=0) -> None:
        """Send an object in buffered mode: it is copied to the attached buffer (MPI-4.1, 3.4)."""
        send_object(self.comm, obj, dest, tag, MODE_BUFFERED)

    def recv(self, buf: Buffer | None = None, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> object:
        """Wait for an object of any size, and return it (MPI-4.1, 3.2.4).

        Parameters:
            buf: memory to receive the pickle into; of no use any more, and deprecated as in mpi4py.
        """
        if buf is not None:
            from warnings import warn
            warn("the 'buf' argument is deprecated", UserWarning, stacklevel=2)
        return receive_object(self.comm, buf, source, tag, status)

    def isend(self, obj: object, int dest, int tag=0) -> Request:
        """Begin to send an object as it is now (MPI-4.1, 3.7.2).  A large array is copied; `Isend` copies nothing."""
        return isend_object(self.comm, obj, dest, tag, MODE_STANDARD)

    def issend(self, obj: object, int dest, int tag=0) -> Request:
        """Begin to send an object in synchronous mode (MPI-4.1, 3.7.2)."""
        return isend_object(self.comm, obj, dest, tag, MODE_SYNCHRONOUS)

    def ibsend(self, obj: object, int dest, int tag=0) -> Request:
        """Begin to send an object in buffered mode (MPI-4.1, 3.7.2)."""
        return isend_object(self.comm, obj, dest, tag, MODE_BUFFERED)

    def irecv(self, buf: Buffer | None = None, int source=ANY_SOURCE, int tag=ANY_TAG) -> Request:
        """Begin to receive an object of any size, which the request's `wait` returns (MPI-4.1, 3.7.2).

        Parameters:
            buf: memory to receive the pickle into; not needed, its memory is made when the message is matched.
        """
        try:
            return begin_receive_object(self.comm, buf, source, tag)
        except MPIError as error:
            hand_over(error, self.comm)

    def sendrecv(self, sendobj: object, int dest, int sendtag=0, recvbuf: Buffer | None = None, int source=ANY_SOURCE,
                 int recvtag=ANY_TAG, Status status=None) -> object:
        """Send one object and receive another, without deadlock (MPI-4.1, 3.10)."""
        cdef Request receive
        cdef Parcel parcel
        try:
            check_dest(self.comm, dest, sendtag)
            check_source(self.comm, source, recvtag)
            # What is wrong with it is found before a message is taken from the queues.
            parcel = None if dest == PROC_NULL else wrap(sendobj)
            receive = begin_receive_object(self.comm, recvbuf, source, recvtag)
            try:
                if parcel is not None:
                    end_call(pml.send(parcel.address, parcel.count, parcel.typemap, dest, sendtag, MODE_STANDARD, self.comm),
                             NULL, parcel, NULL)
            except BaseException:
                give_up(receive.request)
                raise
        except MPIError as error:
            hand_over(error, self.comm)
        return end_object_call(receive, record_of(status))

    def probe(self, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> bool:
        """Wait until an object can be received; `status` tells from whom.  Always True (MPI-4.1, 3.8.1)."""
        return probe(self.comm, source, tag, status)

    def iprobe(self, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> bool:
        """Whether an object can be received; `status` tells from whom (MPI-4.1, 3.8.1)."""
        return iprobe(self.comm, source, tag, status)

    def mprobe(self, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> Message:
        """Wait for an object's message and take it out of the queues (MPI-4.1, 3.8.2)."""
        return mprobe(self.comm, source, tag, status)

    def improbe(self, int source=ANY_SOURCE, int tag=ANY_TAG, Status status=None) -> Message | None:
        """Take an object's message out of the queues, if there is one (MPI-4.1, 3.8.2)."""
        return improbe(self.comm, source, tag, status)


cdef dict attributes_of(PointToPoint self):
    if self.comm is None or self.comm.freed:
        hand_over(no_communicator(self.comm), self.comm)
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


# -- probe

cdef bint probe(Communicator comm, int source, int tag, Status status) except -1:
    try:
        check_source(comm, source, tag)
        if source == PROC_NULL:
            set_from_nobody(record_of(status))
        else:
            pml.probe(source, tag, comm, record_of(status))
    except MPIError as error:
        hand_over(error, comm)
    return True


cdef bint iprobe(Communicator comm, int source, int tag, Status status) except -1:
    try:
        check_source(comm, source, tag)
        if source == PROC_NULL:
            set_from_nobody(record_of(status))
            return True
        return pml.iprobe(source, tag, comm, record_of(status))
    except MPIError as error:
        hand_over(error, comm)


cdef Message mprobe(Communicator comm, int source, int tag, Status status):
    cdef CoreMessage message
    try:
        check_source(comm, source, tag)
        if source == PROC_NULL:
            set_from_nobody(record_of(status))
            return new_message(None)
        message = pml.mprobe(source, tag, comm)
    except MPIError as error:
        hand_over(error, comm)
    if status is not None:
        status.record = message.status
    return new_message(message)


cdef Message improbe(Communicator comm, int source, int tag, Status status):
    cdef CoreMessage message
    try:
        check_source(comm, source, tag)
        if source == PROC_NULL:
            set_from_nobody(record_of(status))
            return new_message(None)
        message = pml.improbe(source, tag, comm)
    except MPIError as error:
        hand_over(error, comm)
    if message is None:
        return None
    if status is not None:
        status.record = message.status
    return new_message(message)
