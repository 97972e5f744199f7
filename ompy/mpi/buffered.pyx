# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""Buffered mode (MPI-4.1, 3.6).

Messages under way occupy runs of the attached memory; a new one takes the first gap that it fits in:

    | message 3 |   gap   | message 1 | message 2 |        gap        |
"""

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.constants cimport MODE_STANDARD
from ompy.core.convertor cimport pack_all
from ompy.core.progress cimport progress, wait
from ompy.core.typemap cimport predefined
from ompy.mca.pml cimport pml
from ompy.mpi.combined cimport combine
from ompy.mpi.memory cimport allocate_buffer, buffer
from ompy.mpi.request cimport new_request
from ompy.mpi.sentinels cimport BufferAutomaticType, buffer_automatic

from ompy.core.errors import ERR_BUFFER, MPIError
from ompy.mpi.exceptions import Exception as MPIException

# Bytes that a program must add for each message (MPI-4.1, 3.6): none is used here, but programs written for other
# libraries count on a positive number.
BSEND_OVERHEAD = 64

cdef Typemap byte_typemap = predefined(BASIC_BYTE)

# Rounds of the engine without news after which there is no more to learn about messages.
cdef enum:
    IDLE_ROUNDS = 64

# The buffer of the process, for communicators that have none of their own.
cdef dict process_attributes = {}


cdef class BufferedMessage:
    """One message in the attached memory."""


cdef class AttachedBuffer:
    """Memory for buffered sends, and the messages in it."""

    def __init__(self, given):
        cdef buffer view
        self.messages = []
        if given is None or isinstance(given, BufferAutomaticType):
            self.given = buffer_automatic
            return
        self.given = given
        view = buffer.frombuffer(given)
        self.memory = view
        self.address = <size_t> view.view.buf
        self.nbytes = view.view.len

    cdef int reap(self) except -1:
        cdef BufferedMessage message
        cdef list over = [message for message in self.messages if message_is_over(message)]
        for message in over:
            self.messages.remove(message)
            message.request.conclude(NULL)
        return 0

    cdef BufferedMessage reserve(self, Py_ssize_t nbytes):
        """Room for a message.  Where there is none at first, what has been received meanwhile leaves."""
        cdef BufferedMessage taken
        cdef int idle = 0
        self.reap()
        taken = self.place_for(nbytes)
        while taken is None and idle < IDLE_ROUNDS and nbytes <= self.nbytes:
            idle = 0 if progress() else idle + 1
            self.reap()
            taken = self.place_for(nbytes)
        if taken is None:
            what = f"a message of {nbytes} bytes does not fit into the attached {self.nbytes} bytes"
            raise MPIError(ERR_BUFFER, f"{what} besides {len(self.messages)} others: attach a larger buffer, or flush it")
        return taken

    cdef BufferedMessage place_for(self, Py_ssize_t nbytes):
        cdef BufferedMessage message, taken = BufferedMessage.__new__(BufferedMessage)
        cdef buffer own
        cdef size_t end = self.address
        cdef Py_ssize_t position = 0
        taken.nbytes = nbytes
        if self.memory is None:
            own = allocate_buffer(nbytes, False)
            taken.memory = own
            taken.start = <size_t> own.view.buf
            self.messages.append(taken)
            return taken
        # Nothing from here to the insertion lets another thread in.
        for message in self.messages:
            if message.start - end >= <size_t> nbytes:
                break
            end = message.start + message.nbytes
            position += 1
        else:
            if self.address + self.nbytes - end < <size_t> nbytes:
                return None
        taken.start = end
        self.messages.insert(position, taken)
        return taken

    cdef int send(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, Communicator comm) except -1:
        cdef BufferedMessage message = self.reserve(count * typemap.size)
        try:
            pack_all(<char *> address, count, typemap, <char *> message.start)
            message.request = pml.isend(message.start, message.nbytes, byte_typemap, dest, tag, MODE_STANDARD, comm)
        except BaseException:
            self.messages.remove(message)
            raise
        if message.request.complete:
            self.messages.remove(message)
            message.request.conclude(NULL)
        else:
            message.request.buffer = self if message.memory is None else message.memory
        return 0

    cdef int flush(self) except -1:
        cdef BufferedMessage message
        for message in list(self.messages):
            if message.request is not None and not message.request.complete:
                wait(message.request)
        return self.reap()

    cdef Request iflush(self):
        cdef BufferedMessage message
        self.reap()
        return combine([message.request for message in self.messages if message.request is not None], None, False)


cdef bint message_is_over(BufferedMessage message) noexcept:
    return message.request is not None and message.request.complete


cdef AttachedBuffer attached(dict holder):
    cdef AttachedBuffer found = (process_attributes if holder is None else holder).get("buffer")
    if found is None:
        raise MPIException(ERR_BUFFER, "no buffer is attached: call Attach_buffer first")
    return found


cdef int attach(dict holder, object memory) except -1:
    cdef dict attributes = process_attributes if holder is None else holder
    if attributes.get("buffer") is not None:
        raise MPIException(ERR_BUFFER, "a buffer is attached already: call Detach_buffer first")
    attributes["buffer"] = AttachedBuffer(memory)
    return 0


cdef object detach(dict holder):
    cdef AttachedBuffer found = attached(holder)
    found.flush()
    del (process_attributes if holder is None else holder)["buffer"]
    return found.given


cdef int send_buffered(size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, Communicator comm) except -1:
    cdef AttachedBuffer found = comm.attributes.get("buffer")
    if found is None:
        session = comm.attributes.get("session")
        if session is not None:
            found = session.attributes.get("buffer")
    if found is None:
        found = attached(None)
    return found.send(address, count, typemap, dest, tag, comm)


cdef class BufferedSend(Request):
    """A persistent send in buffered mode: each start copies the message and is complete."""

    cdef size_t address
    cdef Py_ssize_t count
    cdef Typemap typemap
    cdef Communicator comm

    cpdef int start(self) except -1:
        # First: one that finds no room was not started.
        send_buffered(self.address, self.count, self.typemap, self.peer, self.tag, self.comm)
        self.begin()
        return self.finish()


cdef Request buffered_init(size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, Communicator comm):
    cdef BufferedSend request = BufferedSend.__new__(BufferedSend)
    request.persistent = True
    request.address = address
    request.count = count
    request.typemap = typemap
    request.comm = comm
    request.communicator = comm
    request.peer = dest
    request.tag = tag
    return request


def Attach_buffer(buf: Buffer | None) -> None:
    """Attach memory for sends in buffered mode (MPI-4.1, 3.6); None or BUFFER_AUTOMATIC: the library makes it as needed.

    Raises:
        Exception: ERR_BUFFER when a buffer is attached already.
        BufferError: read-only or scattered memory.
    """
    attach(None, buf)


def Detach_buffer() -> Buffer | None:
    """Wait until all messages have left the attached buffer, and give it back (MPI-4.1, 3.6).

    Raises:
        Exception: ERR_BUFFER when no buffer is attached.
    """
    return detach(None)


def Flush_buffer() -> None:
    """Wait until all messages have left the attached buffer (MPI-4.1, 3.6)."""
    attached(None).flush()


def Iflush_buffer() -> Request:
    """A request that is complete when all messages have left the attached buffer (MPI-4.1, 3.6)."""
    return new_request(attached(None).iflush(), None)


def flush_all() -> None:
    """Before finalisation: let the messages of the process's buffer leave, if there is one."""
    if process_attributes.get("buffer") is not None:
        attached(None).flush()
