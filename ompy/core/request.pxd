# The life of an operation that may outlast its call (MPI-4.1, 3.7).
#
#                begin              finish, fail             retire
#     inactive ---------> pending ---------------> complete ---------> inactive     persistent: may begin again
#        ^                   |                        ^         |
#        |             abandon                        |         | release
#        |                   v        finish          |         v
#        |               abandoned -------------------'      released: what it held of the program's is let go of
#        |                                                      |
#        '-------------------------------- reset ---------------'     where its maker keeps such requests for the next use
#
# `active` is true from begin to retire, `complete` from finish to begin.  Whoever carries the operation out begins it, and
# calls exactly one of finish and fail; whoever has it done waits for `complete`, and then either concludes it (wait, test, a
# blocking call), or releases it.  An abandoned request has nobody who waits: what is left of the operation goes on, or is
# thrown away, without the call that began it.
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
    cdef readonly bint abandoned
    cdef bint counted                            # among what is under way on its communicator: from begin to finish
    cdef public object error                     # the exception that a wait raises, or None
    cdef public object buffer                    # keeps the program's memory alive until completion
    # For the job board: what this waits for.  peer is a rank of `communicator`.
    cdef public int operation
    cdef public int peer
    cdef public int tag
    cdef public Py_ssize_t nbytes
    cdef public object communicator
    cdef CompletionHook hook                     # of the first who watches; NULL for nobody
    cdef object hook_context
    cdef list more_hooks                         # Watcher, of the others; mostly None

    # Begin (again).  Only persistent requests are started by their user.
    cpdef int start(self) except -1
    # Try to cancel; the outcome is in `status.cancelled` once the request is complete.
    cpdef int cancel(self) except -1
    # The user has let go of the handle: the request may go back to its pool, as soon as it is complete.  The caller's is
    # the last reference, and it does not look at the request any more.
    cpdef int release(self) except -1
    # The call that began this ends with an exception, before the operation does.  A receive that was not matched is taken back,
    # a matched message is thrown away; a message that is being sent arrives as it was.  From here on the program may
    # change its memory, and `memory`, whatever keeps that alive, is kept as long as anybody may still look at it or write to
    # it.  With None this returns only when nobody does.
    cpdef int abandon(self, object memory) except -1

    # For whoever carries the operation out: begin, then exactly one of finish and fail.
    cdef int begin(self) except -1
    cdef int finish(self) except -1
    cpdef int fail(self, object error) except -1
    # Back to what a new one is; only of a complete or inactive one.
    cdef int reset(self) except -1

    # Have `hook(context, request)` called at completion, besides others who watch; at each one, of a persistent request.
    # Nobody is called for a request that is complete already.
    cdef int watch(self, CompletionHook hook, object context) except -1
    # Those who gave this context no longer watch.
    cdef int unwatch(self, object context) except -1
    cdef int tell_watchers(self) except -1

    # A wait or test has seen the request complete: a persistent one is inactive again.
    cdef int retire(self) except -1
    # The whole end of a complete request as its caller sees it: fill in `status` (which may be NULL), retire, release unless it
    # is persistent, and return the error that is to be raised, or None.
    cdef object conclude(self, StatusRecord *status)


cdef class CompletedRequest(Request):
    pass


# What sends that were over at once share: complete, without an error, and always active, so that any number of handles
# may stand for it and be waited for.
cdef Request sent

# What sends share that leave together: complete, without an error, once they have left.  As with `sent` any number of handles
# may stand for it; what they send was copied.
cdef class Departure(Request):
    pass


# The progress engine's, which knows this module: threads asleep until something is complete, what wakes them, and a wait that
# no signal ends.
cdef int sleepers
ctypedef void (*WakeFunction)() noexcept
ctypedef int (*WaitFunction)(Request request) except -1
cdef WakeFunction wake_sleepers
cdef WaitFunction wait_uninterrupted
