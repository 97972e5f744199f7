# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# cython: auto_pickle=False
"""How one operation is completed (MPI-4.1, 3.7.3): waits and tests."""

from ompy.core.progress cimport progress_or_yield, wait
from ompy.core.request cimport Request as CoreRequest
from ompy.core.request cimport sent
from ompy.core.status cimport StatusRecord, set_empty
from ompy.mca.pml cimport closed
from ompy.mpi.buffers cimport Spec, keep
from ompy.mpi.generalized cimport GeneralizedRequest
from ompy.mpi.handle cimport Handle

from ompy.core.errors import ERR_OTHER, ERR_REQUEST, MPIError
from ompy.mpi.exceptions import Exception as MPIException
from ompy.mpi.raising import hand_over


cdef class RequestHandle(Handle):
    """A handle on an operation that may outlast its call."""

    cdef object core(self):
        return self.request

    cdef int become(self, object core) except -1:
        self.request = core
        self.kept = None
        self.loader = NULL
        return 0


cdef CoreRequest require(RequestHandle handle):
    if handle.request is None:
        raise MPIException(ERR_REQUEST, "a request expected, not REQUEST_NULL")
    return handle.request


cdef CoreRequest require_open(RequestHandle handle):
    cdef CoreRequest core = require(handle)
    if closed is not None:
        raise MPIException(ERR_OTHER, closed)
    return core


cdef int wait_long(RequestHandle handle) except -1:
    try:
        wait(handle.request)
    except MPIError as error:                    # nobody can complete it any more
        hand_over(error, handle.request.communicator)
    return 0


cdef int advance(CoreRequest asked) except -1:
    try:
        progress_or_yield()
    except MPIError as error:
        hand_over(error, asked.communicator)
    return 0


cdef int let_go(CoreRequest core) except -1:
    if isinstance(core, GeneralizedRequest):
        (<GeneralizedRequest> core).free()
    return core.release()


cdef int settle(RequestHandle handle, StatusRecord *status) except -1:
    cdef CoreRequest core = handle.request
    if core is None or not core.active:
        if status != NULL:
            set_empty(status)
        return 0
    if core is sent:                             # shared by all sends that were over at once: nothing to retire or release
        if status != NULL:
            status[0] = sent.status
        return become_null(handle)
    if type(core) is GeneralizedRequest:
        return settle_generalized(handle, <GeneralizedRequest> core, status)
    if core.persistent:
        wait_core(core, status)
        return 0
    become_null(handle)
    wait_core(core, status)
    return 0


cdef int settle_generalized(RequestHandle handle, GeneralizedRequest core, StatusRecord *status) except -1:
    become_null(handle)
    try:
        core.query()
        if status != NULL:
            status[0] = core.status
    finally:
        core.retire()
        core.free()
    return 0


cdef object settle_object(RequestHandle handle, StatusRecord *status):
    cdef CoreRequest core = handle.request
    cdef Loader loader = handle.loader
    cdef object kept = handle.kept, block = None
    cdef bint active = is_active(handle)
    if loader == NULL or not active:
        settle(handle, status)
        return None
    # The block leaves the request before that goes back to its pool.
    try:
        if core.error is None and not core.status.cancelled:
            block = loader(core, kept)
    finally:
        settle(handle, status)
    return block


cdef bint look(RequestHandle handle, StatusRecord *status) except -1:
    if not is_complete(handle):
        return False
    look_at_complete(handle, status)
    return True


cdef int look_at_complete(RequestHandle handle, StatusRecord *status) except -1:
    if isinstance(handle.request, GeneralizedRequest) and is_active(handle):
        (<GeneralizedRequest> handle.request).query()
    if status != NULL:
        if is_active(handle):
            status[0] = handle.request.status
        else:
            set_empty(status)
    return 0


cdef int wait_core(CoreRequest core, StatusRecord *status) except -1:
    cdef object communicator, error
    if not core.complete:
        wait(core)
    communicator = core.communicator if core.error is not None else None
    error = core.conclude(status)
    if error is not None:
        hand_over(error, communicator)
    return 0


cdef int end_begun_call(CoreRequest core, Spec *spec, object owner, StatusRecord *status) except -1:
    cdef object error
    if not core.complete:
        try:
            wait(core)
        except BaseException:
            core.abandon(owner if spec == NULL else keep(spec))
            raise
    error = core.conclude(status)
    if error is not None:
        raise error
    return 0


cdef object end_object_call(RequestHandle handle, StatusRecord *status):
    cdef CoreRequest core = handle.request
    if not core.complete:
        try:
            wait(core)
        except BaseException:
            core.abandon(core)
            raise
    return settle_object(handle, status)
