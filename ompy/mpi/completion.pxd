# How one operation is completed (MPI-4.1, 3.7.3), of which the program has a handle.
#
#     wait:   wait_for, then settle         test:   is_complete, then settle         get_status:   look
#
# `settle` fills in the status, raises the operation's error, and makes the handle null; a persistent request becomes inactive.
from ompy.core.request cimport Request as CoreRequest, sent
from ompy.core.status cimport StatusRecord
from ompy.mpi.buffers cimport Spec
from ompy.mpi.handle cimport Handle, any_number, forget

# What the lower-case waits return once the operation is complete, made from what `keep` holds: an unpickled object.
ctypedef object (*Loader)(CoreRequest request, object kept)


cdef class RequestHandle(Handle):
    cdef CoreRequest request
    cdef object kept                             # what the operation uses of the program's, alive as long as the request
    cdef Loader loader                           # NULL: lower-case waits return None


# The request; an error for a null handle, and for the other one after Finalize, too.
cdef CoreRequest require(RequestHandle handle)
cdef CoreRequest require_open(RequestHandle handle)

cdef inline int become_null(RequestHandle handle) except -1:
    # All sends that were over at once share one.
    if any_number and handle.request is not sent:
        forget(handle)
    handle.request = None
    handle.kept = None
    handle.loader = NULL
    return 0


cdef inline bint is_active(RequestHandle handle) noexcept:
    return handle.request is not None and handle.request.active


cdef int wait_long(RequestHandle handle) except -1

cdef inline int wait_for(RequestHandle handle) except -1:
    return wait_long(handle) if is_active(handle) and not handle.request.complete else 0


# What a test does for a request that is under way.
cdef int advance(CoreRequest asked) except -1

# Complete, or nothing to wait for.
cdef inline bint is_complete(RequestHandle handle) except -1:
    if not is_active(handle) or handle.request.complete:
        return True
    advance(handle.request)
    return handle.request.complete


# What every wait and every successful test does to a complete (or inactive) request.
cdef int settle(RequestHandle handle, StatusRecord *status) except -1
# The same for a lower-case one: returns the object.
cdef object settle_object(RequestHandle handle, StatusRecord *status)
# Whether it is complete; the request stays as it is.
cdef bint look(RequestHandle handle, StatusRecord *status) except -1
cdef int look_at_complete(RequestHandle handle, StatusRecord *status) except -1
# The program frees its handle; an operation under way completes all the same.
cdef int let_go(CoreRequest core) except -1

# Wait until a core request is complete, then raise its error (through the error handler of its communicator) or fill
# `status`, which may be NULL.  Persistent requests become inactive, others are released: the caller lets go of them.
cdef int wait_core(CoreRequest core, StatusRecord *status) except -1
# The same for what a blocking call has begun (None: it is over already), with its error as MPIError.  When a signal handler
# raises, the call ends and the operation is abandoned; what it uses of the program's memory, which `spec` or `owner` names,
# stays.
cdef inline int end_call(CoreRequest core, Spec *spec, object owner, StatusRecord *status) except -1:
    return 0 if core is None else end_begun_call(core, spec, owner, status)

cdef int end_begun_call(CoreRequest core, Spec *spec, object owner, StatusRecord *status) except -1
# A lower-case wait in the same case, for a call that returns an object; the request has memory of its own.
cdef object end_object_call(RequestHandle handle, StatusRecord *status)
