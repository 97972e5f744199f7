# One request for several operations: complete when all of them are.
from ompy.core.request cimport Request

cdef class CombinedRequest(Request):
    cdef list parts
    cdef int pending
    cdef Request reported                        # the part whose status this request has, or None
    cdef bint owns_parts                         # they go back to their pool with this request


cdef CombinedRequest combine(list parts, Request reported, bint owns_parts)
