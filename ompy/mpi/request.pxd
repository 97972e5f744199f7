# The program's handles on operations under way (MPI-4.1, 3.7).
from ompy.core.request cimport Request as CoreRequest
from ompy.mpi.completion cimport Loader, RequestHandle


cdef class Request(RequestHandle):
    pass


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
