# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: extra_compile_args=-Os
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
"""Matched messages (MPI-4.1, 3.8.2)."""

from ompy.core.communicator cimport Hold
from ompy.core.constants cimport ANY_SOURCE, ANY_TAG, PROC_NULL
from ompy.core.request cimport CompletedRequest, Request as CoreRequest
from ompy.core.status cimport StatusRecord, set_empty
from ompy.core.typemap cimport Typemap
from ompy.mca.pml cimport Message as CoreMessage, pml
from ompy.mpi.buffers cimport Spec, keep, parse_recv, release
from ompy.mpi.handle cimport Handle, forget, predefine
from ompy.mpi.pickling cimport unwrap
from ompy.mpi.completion cimport end_call, end_object_call
from ompy.mpi.request cimport Request, new_object_request, new_request
from ompy.mpi.status cimport Status, record_of

from ompy.core.errors import ERR_REQUEST, MPIError
from ompy.mpi.exceptions import Exception as MPIException
from ompy.mpi.pickling import new_block
from ompy.mpi.raising import hand_over


cdef class NoProc:
    """What MESSAGE_NO_PROC stands for: the message that a probe of PROC_NULL finds."""


cdef NoProc no_proc = NoProc()


cdef class Message(Handle):
    """A message that a matched probe has taken out of the queues: only this handle can receive it (MPI-4.1, 3.8.2)."""

    def __cinit__(self, Message message=None):
        if message is not None:
            self.message = message.message

    cdef type family(self):
        return Message

    cdef object core(self):
        return self.message

    cdef int become(self, object core) except -1:
        self.message = core
        return 0

    cdef int dispose(self) except -1:
        # A message that was taken out must be received: there is nothing to free.
        return 0

    @classmethod
    def Probe(cls, comm: Comm, source: int = ANY_SOURCE, tag: int = ANY_TAG, Status status=None) -> Message:
        """Wait for a message and take it out of the queues; as `Comm.Mprobe` (MPI-4.1, 3.8.2)."""
        return comm.Mprobe(source, tag, status)

    @classmethod
    def Iprobe(cls, comm: Comm, source: int = ANY_SOURCE, tag: int = ANY_TAG, Status status=None) -> Message | None:
        """Take a message out of the queues if there is one; as `Comm.Improbe` (MPI-4.1, 3.8.2)."""
        return comm.Improbe(source, tag, status)

    @classmethod
    def probe(cls, comm: Comm, source: int = ANY_SOURCE, tag: int = ANY_TAG, Status status=None) -> Message:
        """Wait for a message and take it out of the queues; as `Comm.mprobe` (MPI-4.1, 3.8.2)."""
        return comm.Mprobe(source, tag, status)

    @classmethod
    def iprobe(cls, comm: Comm, source: int = ANY_SOURCE, tag: int = ANY_TAG, Status status=None) -> Message | None:
        """Take a message out of the queues if there is one; as `Comm.improbe` (MPI-4.1, 3.8.2)."""
        return comm.Improbe(source, tag, status)

    def Recv(self, buf: BufSpec, Status status=None) -> None:
        """Receive the message into a buffer (MPI-4.1, 3.8.3); the handle becomes MESSAGE_NULL.

        Raises:
            Exception: ERR_REQUEST for MESSAGE_NULL, ERR_TRUNCATE for a buffer that is too small.
        """
        cdef Spec spec
        cdef CoreMessage message
        cdef CoreRequest request
        cdef object communicator = None
        if self.message is no_proc:
            self.take(record_of(status))
            return
        # Looked at first: a buffer that won't do leaves the message where it is.
        parse_recv(buf, &spec)
        try:
            message = self.take(NULL)
            communicator = message.communicator
            request = self.begin(message, &spec)
            end_call(request, &spec, None, record_of(status))
        except MPIError as error:
            hand_over(error, communicator)
        finally:
            release(&spec)

    def Irecv(self, buf: BufSpec) -> Request:
        """Begin to receive the message into a buffer (MPI-4.1, 3.8.3); the handle becomes MESSAGE_NULL."""
        cdef Spec spec
        cdef CoreMessage message
        cdef CoreRequest request
        if self.message is no_proc:
            self.take(NULL)
            return new_request(nothing_received(), None)
        parse_recv(buf, &spec)
        try:
            message = self.take(NULL)
            try:
                request = self.begin(message, &spec)
            except MPIError as error:
                hand_over(error, message.communicator)
        except BaseException:
            release(&spec)
            raise
        return new_request(request, keep(&spec))

    def recv(self, Status status=None) -> object:
        """Receive the message as an object; the handle becomes MESSAGE_NULL (MPI-4.1, 3.8.3).

        Raises:
            Exception: ERR_REQUEST for MESSAGE_NULL.
        """
        cdef CoreMessage message = self.take(record_of(status))
        cdef CoreRequest request
        if message is None:
            return None
        request = self.begin_object(message)
        return end_object_call(new_object_request(request, None, load_received), record_of(status))

    def irecv(self) -> Request:
        """Begin to receive the message as an object, which the request's `wait` returns (MPI-4.1, 3.8.3).

        The handle becomes MESSAGE_NULL.
        """
        cdef CoreMessage message = self.take(NULL)
        if message is None:
            return new_request(nothing_received(), None)
        return new_object_request(self.begin_object(message), None, load_received)

    cdef CoreMessage take(self, StatusRecord *status):
        """The message, which is the caller's from now on; None for MESSAGE_NO_PROC, with `status` filled in."""
        cdef object message = self.message
        if message is None:
            raise MPIException(ERR_REQUEST, "a message of a matched probe expected, not MESSAGE_NULL")
        if not self.constant:
            forget(self)
            self.message = None
        if message is no_proc:
            if status != NULL:
                set_empty(status)
                status.source = PROC_NULL
            return None
        return <CoreMessage> message

    cdef CoreRequest begin(self, CoreMessage message, const Spec *spec):
        """A receive that can't begin leaves the message to the handle."""
        try:
            return pml.imrecv(spec.address, spec.count, <Typemap> spec.typemap, message)
        except MPIError:
            self.message = message
            raise

    cdef CoreRequest begin_object(self, CoreMessage message):
        try:
            return pml.imrecv_object(new_block, message)
        except MPIError as error:
            self.message = message
            hand_over(error, message.communicator)


cdef CoreRequest nothing_received():
    cdef CompletedRequest request = CompletedRequest.__new__(CompletedRequest)
    request.status.source = PROC_NULL
    return request


cdef object load_received(CoreRequest core, object kept):
    return unwrap(core.buffer) if core.buffer is not None else None


cdef Message new_message(CoreMessage core):
    cdef Message message = Message.__new__(Message)
    if core is None:
        message.message = no_proc
    else:
        core.hold = Hold(core.communicator)
        message.message = core
    return message


MESSAGE_NULL = predefine(Message(), "MESSAGE_NULL")
MESSAGE_NO_PROC = predefine(new_message(None), "MESSAGE_NO_PROC")
