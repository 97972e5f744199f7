# Buffered mode (MPI-4.1, 3.6): a send copies its message into memory that the program attached, and is complete.
from ompy.core.communicator cimport Communicator
from ompy.core.request cimport Request
from ompy.core.typemap cimport Typemap

cdef class BufferedMessage:
    """A run of the attached memory, taken from before the message is copied there until it has left."""
    cdef size_t start                            # address
    cdef Py_ssize_t nbytes
    cdef Request request                         # None until the send has begun
    cdef object memory                           # of its own, where the library makes it


cdef class AttachedBuffer:
    cdef readonly object given                   # what the program attached
    cdef object memory                           # buffer over it; None: the library makes memory for each message
    cdef size_t address
    cdef Py_ssize_t nbytes
    cdef list messages                           # BufferedMessage, by address

    cdef int reap(self) except -1
    # Take a gap for a message.
    cdef BufferedMessage reserve(self, Py_ssize_t nbytes)
    # None where there is none for so many bytes.
    cdef BufferedMessage place_for(self, Py_ssize_t nbytes)
    cdef int send(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, Communicator comm) except -1
    # Wait until all messages have left.
    cdef int flush(self) except -1
    cdef Request iflush(self)


# `holder` is the dict of attributes of a communicator or a session, or None for the process.
cdef int attach(dict holder, object memory) except -1
cdef object detach(dict holder)
cdef AttachedBuffer attached(dict holder)

# The message goes to the buffer of the communicator, of its session, or of the process, whichever there is first.
cdef int send_buffered(size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, Communicator comm) except -1
cdef Request buffered_init(size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, Communicator comm)
