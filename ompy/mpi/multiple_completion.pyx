# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# cython: auto_pickle=False
"""How several operations are completed by one call (MPI-4.1, 3.7.5)."""

from cpython.object cimport PyObject

from ompy.core.constants cimport UNDEFINED
from ompy.core.progress cimport wait_until
from ompy.core.request cimport Request as CoreRequest
from ompy.core.signals cimport check_signals, defer_handlers, resume_handlers
from ompy.core.status cimport StatusRecord, set_empty
from ompy.mpi.completion cimport (
    RequestHandle, advance, is_active, look_at_complete, settle, settle_object, wait_for,
)
from ompy.mpi.status cimport Status

from ompy.core.errors import ERR_IN_STATUS, MPIError, code_of
from ompy.mpi.exceptions import Exception as MPIException
from ompy.mpi.raising import hand_over


cdef bint any_complete(void *context) except -1:
    return (<Selection> <PyObject *> context).first_complete() != NONE_COMPLETE


cdef class Selection:
    """The requests given to one call."""

    def __init__(self, requests):
        self.requests = list(requests)
        for request in self.requests:
            if not isinstance(request, RequestHandle):
                raise TypeError(f"requests: Requests expected, not {type(request).__name__}")

    cdef Py_ssize_t first_complete(self) except -2:
        cdef Py_ssize_t index
        cdef bint active = False
        cdef RequestHandle handle
        for index in range(len(self.requests)):
            handle = <RequestHandle> self.requests[index]
            if is_active(handle):
                if handle.request.complete:
                    return index
                active = True
        return NONE_COMPLETE if active else UNDEFINED

    cdef CoreRequest shown(self):
        cdef RequestHandle handle
        for handle in self.requests:
            if is_active(handle) and not handle.request.complete:
                return handle.request
        return None

    cdef Py_ssize_t wait_any(self) except -2:
        cdef Py_ssize_t index = self.first_complete()
        cdef CoreRequest asked
        if index == NONE_COMPLETE:
            asked = self.shown()
            try:
                wait_until(any_complete, <void *> <PyObject *> self, asked)
            except MPIError as error:
                hand_over(error, asked.communicator)
            index = self.first_complete()
        return index

    cdef Py_ssize_t test_any(self) except -2:
        cdef Py_ssize_t index = self.first_complete()
        if index == NONE_COMPLETE:
            advance(self.shown())
            index = self.first_complete()
        return index

    cdef int wait_all(self) except -1:
        # The last first: while it is waited for, those before it are completed in one go.
        cdef Py_ssize_t index = len(self.requests)
        while index > 0:
            index -= 1
            wait_for(<RequestHandle> self.requests[index])
        return 0

    cdef bint test_all(self) except -1:
        cdef RequestHandle handle
        cdef bint progressed = False
        for handle in self.requests:
            if is_active(handle) and not handle.request.complete:
                if not progressed:
                    advance(handle.request)
                    progressed = True
                if not handle.request.complete:
                    return False
        return True

    cdef list complete_ones(self, bint block):
        cdef Py_ssize_t index = self.wait_any() if block else self.test_any()
        cdef RequestHandle handle
        if index == UNDEFINED:
            return None
        indices = []
        for index in range(len(self.requests)):
            handle = <RequestHandle> self.requests[index]
            if is_active(handle) and handle.request.complete:
                indices.append(index)
        return indices

    cdef object settle_any(self, Py_ssize_t index, StatusRecord *status):
        if index == UNDEFINED:
            if status != NULL:
                set_empty(status)
            return None
        check_signals()
        return settle_object(<RequestHandle> self.requests[index], status)

    cdef int look_any(self, Py_ssize_t index, StatusRecord *status) except -1:
        if index == UNDEFINED:
            if status != NULL:
                set_empty(status)
            return 0
        return look_at_complete(<RequestHandle> self.requests[index], status)

    cdef list settle_all(self, object statuses, bint load):
        return self.settle_some(list(range(len(self.requests))), statuses, load)

    cdef int settle_quietly(self) except -1:
        cdef Py_ssize_t index = 0, count = len(self.requests)
        cdef object failure = None
        while index < count:
            try:
                while index < count:
                    index += 1
                    settle(<RequestHandle> self.requests[index - 1], NULL)
            except BaseException as error:
                if failure is None:
                    failure = in_status(error, index - 1)
        if failure is not None:
            raise failure
        return 0

    cdef list settle_some(self, list indices, object statuses, bint load):
        cdef Py_ssize_t position, room = make_room(statuses, len(indices))
        cdef RequestHandle handle
        cdef StatusRecord record
        cdef object failure = None
        cdef list objects = []
        if load:
            check_signals()
        for position in range(len(indices)):
            handle = <RequestHandle> self.requests[<Py_ssize_t> indices[position]]
            set_empty(&record)
            loaded = None
            try:
                if load:
                    loaded = settle_object(handle, &record)
                else:
                    settle(handle, &record)
            except BaseException as error:
                if failure is None:
                    failure = in_status(error, indices[position])
                record.error = error.code if isinstance(error, MPIError) else code_of(error)
            objects.append(loaded)
            if position < room:
                (<Status> statuses[position]).record = record
        if failure is not None:
            raise failure
        return objects

    cdef int look_at(self, object indices, object statuses) except -1:
        cdef Py_ssize_t position, room = make_room(statuses, len(indices))
        cdef StatusRecord record
        for position in range(len(indices)):
            look_at_complete(<RequestHandle> self.requests[<Py_ssize_t> indices[position]], &record)
            if position < room:
                (<Status> statuses[position]).record = record
        return 0


cdef object in_status(object error, Py_ssize_t index):
    """What a call on several requests raises when all are settled; the exceptions of the program's functions go as they are."""
    cdef bint deferred
    if not isinstance(error, MPIError):
        return error
    deferred = defer_handlers()
    try:
        failure = MPIException(ERR_IN_STATUS, f"request {index}: {error}")
    finally:
        if deferred:
            resume_handlers()
    failure.__cause__ = error
    return failure


cdef Py_ssize_t make_room(object statuses, Py_ssize_t wanted) except -1:
    """How many of the statuses can be filled in; a list gets what it lacks."""
    cdef Py_ssize_t room
    if statuses is None:
        return 0
    if isinstance(statuses, list):
        while len(<list> statuses) < wanted:
            (<list> statuses).append(Status.__new__(Status))
    room = min(wanted, len(statuses))
    for index in range(room):
        if not isinstance(statuses[index], Status):
            raise TypeError(f"statuses: Statuses expected, not {type(statuses[index]).__name__}")
    return room
