# The program's handles on operations under way (MPI-4.1, 3.7).
from ompy.core.request cimport Request as CoreRequest
from ompy.core.status cimport StatusRecord
from ompy.mpi.buffers cimport Spec
from ompy.mpi.handle cimport Handle
from ompy.mpi.status cimport Status

# What the lower-case waits return once the operation is complete, made from what `keep` holds: an unpickled object.
ctypedef object (*Loader)(CoreRequest request, object kept)


cdef class Request(Handle):
    cdef CoreRequest request
    cdef object kept                             # what the operation uses of the program's, alive as long as the request
    cdef Loader loader                           # NULL: lower-case waits return None


cdef class Prequest(Request):
    pass


cdef class Grequest(Request):
    pass


# A handle on an operation that has begun.  `kept` keeps the program's memory alive until it is complete.
cdef Request new_request(CoreRequest core, object kept)
# The same for a persistent operation.
cdef Prequest new_prequest(CoreRequest core, object kept)
# The same for one whose lower-case wait returns `loader(core, kept)`.
cdef Request new_object_request(CoreRequest core, object kept, Loader loader)

# Wait until a core request is complete, then raise its error (through the error handler of its communicator) or fill
# `status`, which may be NULL.  Persistent requests become inactive, others are released: the caller lets go of them.
cdef int wait_core(CoreRequest core, StatusRecord *status) except -1
# The same for what a blocking call has begun (None: it is over already), with its error as MPIError.  When a signal handler
# raises, the call ends and the operation is abandoned; what it uses of the program's memory, which `spec` or `owner` names,
# stays.
cdef inline int end_call(CoreRequest core, Spec *spec, object owner, StatusRecord *status) except -1:
    return 0 if core is None else end_begun_call(core, spec, owner, status)

cdef int end_begun_call(CoreRequest core, Spec *spec, object owner, StatusRecord *status) except -1
# `handle.wait(status)` in the same case, for a call that returns an object; the request has memory of its own.
cdef object end_object_call(Request handle, Status status)
