# The life of an operation that may outlast its call (MPI-4.1, 3.7).
#
#     inactive --start--> active --progress--> complete --wait/test--> inactive (persistent) or released
#
# The MPI layer's `Request` is a handle on one of these.  PMLs, schedules and generalised requests subclass it; a waiter
# polls `complete` and calls the progress engine, nothing else.
from ompy.core.status cimport StatusRecord

# What the request does, for the job board and the trace: an index into `ompy.core.board.OPERATIONS`.
cdef class Request

ctypedef int (*CompletionHook)(object context, Request request) except -1

cdef class Request:
    cdef StatusRecord status
    cdef readonly bint complete
    cdef readonly bint active
    cdef readonly bint persistent
    cdef public object error                     # the exception that a wait raises, or None
    cdef public object buffer                    # keeps the program's memory alive until completion
    # For the job board: what this waits for.  peer is a rank of `communicator`.
    cdef public int operation
    cdef public int peer
    cdef public int tag
    cdef public Py_ssize_t nbytes
    cdef public object communicator
    cdef CompletionHook hook                     # called once, by `finish`; NULL for none
    cdef object hook_context

    # Begin (again).  Only persistent requests are started by their user.
    cpdef int start(self) except -1
    # Try to cancel; the outcome is in `status.cancelled` once the request is complete.
    cpdef int cancel(self) except -1
    # The user has let go of the handle: the request may go back to its pool as soon as it is complete.  The caller's is
    # the last reference, and it does not look at the request any more.
    cpdef int release(self) except -1
    # For whoever carries the operation out: begin, then exactly one of finish and fail.
    cdef int begin(self) except -1
    cdef int finish(self) except -1
    cpdef int fail(self, object error) except -1
    # A wait or test has seen the request complete: a persistent one is inactive again.
    cdef int retire(self) except -1


cdef class CompletedRequest(Request):
    pass


# What sends that were over at once share: complete, without an error, and always active, so that any number of handles
# may stand for it and be waited for.
cdef Request sent
