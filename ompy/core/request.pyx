# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-falign-jumps -falign-labels
"""Requests: operations that may outlast their call."""
from ompy.core.communicator cimport Communicator
from ompy.core.errors import ERR_REQUEST, MPIError
from ompy.core.status cimport set_empty
from ompy.core.trace cimport EVENT_COMPLETED, is_tracing, record


cdef class Watcher:
    cdef CompletionHook hook
    cdef object context


cdef class Request:
    """Base of every request.  See `request.pxd` for the life cycle."""

    def __cinit__(self):
        set_empty(&self.status)
        self.peer = -1
        self.tag = -1

    cpdef int start(self) except -1:
        """Begin a persistent request (MPI-4.1, 3.9).  Errors: ERR_REQUEST when the request is not persistent."""
        raise MPIError(ERR_REQUEST, "only persistent requests can be started")

    cpdef int cancel(self) except -1:
        """Ask for cancellation (MPI-4.1, 3.8.4).  Most operations can't be cancelled and complete as usual."""
        return 0

    cpdef int release(self) except -1:
        """The program has let go of its handle."""
        if self.complete:
            self.buffer = None
        return 0

    cpdef int abandon(self, object memory) except -1:
        """The call that began this is over before the operation is."""
        if self.complete:
            return self.release()
        self.abandoned = True
        self.cancel()
        if not self.complete:
            if memory is not None:
                self.buffer = memory if self.buffer is None else (self.buffer, memory)
            elif self.buffer is None:
                wait_uninterrupted(self)
        return 0

    cdef int begin(self) except -1:
        set_empty(&self.status)
        if self.error is not None:
            self.error = None
        self.complete = False
        self.active = True
        self.abandoned = False
        if not self.counted and isinstance(self.communicator, Communicator):
            self.counted = True
            (<Communicator> self.communicator).under_way += 1
        return 0

    cdef int finish(self) except -1:
        if self.complete:
            return 0
        self.complete = True
        if self.counted:
            self.counted = False
            (<Communicator> self.communicator).under_way -= 1
        if is_tracing():
            record(EVENT_COMPLETED, self.status.error, <void *> self, 0, -1, -1, self.status.tag, 0, self.status.nbytes, 0)
        if self.abandoned:
            self.buffer = None
        if self.hook != NULL:
            self.tell_watchers()
        if sleepers:
            wake_sleepers()
        return 0

    cdef int reset(self) except -1:
        set_empty(&self.status)
        self.complete = self.active = self.persistent = self.abandoned = False
        self.hook = NULL
        # An assignment to an attribute costs more than a look at it.
        if self.error is not None:
            self.error = None
        if self.buffer is not None:
            self.buffer = None
        if self.hook_context is not None:
            self.hook_context = self.more_hooks = None
        return 0

    cdef int watch(self, CompletionHook hook, object context) except -1:
        cdef Watcher other
        if self.complete:
            return 0
        if self.hook == NULL:
            self.hook = hook
            self.hook_context = context
            return 0
        other = Watcher.__new__(Watcher)
        other.hook = hook
        other.context = context
        if self.more_hooks is None:
            self.more_hooks = []
        self.more_hooks.append(other)
        return 0

    cdef int unwatch(self, object context) except -1:
        cdef Watcher other
        if self.more_hooks is not None:
            self.more_hooks = [other for other in self.more_hooks if (<Watcher> other).context is not context] or None
        if self.hook != NULL and self.hook_context is context:
            self.hook = NULL
            self.hook_context = None
            if self.more_hooks is not None:
                other = self.more_hooks.pop(0)
                self.hook = other.hook
                self.hook_context = other.context
                self.more_hooks = self.more_hooks or None
        return 0

    cdef int tell_watchers(self) except -1:
        cdef CompletionHook hook = self.hook
        cdef object context = self.hook_context
        cdef list others = self.more_hooks
        cdef Watcher other
        if not self.persistent:
            self.hook = NULL
            self.hook_context = self.more_hooks = None
        hook(context, self)
        if others is not None:
            for other in list(others):
                other.hook(other.context, self)
        return 0

    cpdef int fail(self, object error) except -1:
        """Complete with an error, which the wait will raise."""
        self.error = error
        self.status.error = error.code if isinstance(error, MPIError) else 16
        return self.finish()

    def succeed(self, int source=-1, int tag=-1, Py_ssize_t nbytes=0):
        """Complete without an error, for components in plain Python: where a received message came from, and its bytes."""
        self.status.source = source
        self.status.tag = tag
        self.status.nbytes = nbytes
        self.finish()

    def activate(self):
        """Begin, for components in plain Python."""
        self.begin()

    def persist(self):
        """The request is a persistent one, which its user starts; for components in plain Python."""
        self.persistent = True

    def settle(self, int source=-1, int tag=-1, Py_ssize_t nbytes=0, *, error=None, bint cancelled=False):
        """Complete with this status, for components in plain Python; `error` is raised by the wait."""
        self.error = error
        self.status.source = source
        self.status.tag = tag
        self.status.nbytes = nbytes
        self.status.cancelled = cancelled
        if error is not None:
            self.status.error = error.code if isinstance(error, MPIError) else 16
        self.finish()

    cdef int retire(self) except -1:
        self.active = False
        return 0

    cdef object conclude(self, StatusRecord *status):
        cdef object error = self.error
        if status != NULL:
            status[0] = self.status
        self.retire()
        if not self.persistent:
            self.release()
        return error

    @property
    def result(self):
        """(source, tag, error class, cancelled, bytes) of a complete request, for components in plain Python."""
        return (self.status.source, self.status.tag, self.status.error, bool(self.status.cancelled), self.status.nbytes)


cdef class CompletedRequest(Request):
    """A request that was complete when it was made, such as a send to MPI_PROC_NULL."""

    def __cinit__(self):
        self.complete = True
        self.active = True


cdef class SentRequest(CompletedRequest):
    """See `sent`."""

    cdef int retire(self) except -1:
        return 0


cdef class Departure(Request):
    """See `request.pxd`."""

    def __cinit__(self):
        set_empty(&self.status)
        self.active = True

    cdef int retire(self) except -1:
        return 0

    cpdef int release(self) except -1:
        return 0

    cpdef int abandon(self, object memory) except -1:
        return 0


sent = SentRequest()
