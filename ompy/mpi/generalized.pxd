# Requests that the program carries out itself (MPI-4.1, 13.2).
from ompy.core.request cimport Request

cdef class GeneralizedRequest(Request):
    cdef object query_function, free_function, cancel_function
    cdef tuple arguments
    cdef dict keywords
    cdef bint unwanted                           # its last handle was let go of before it was complete

    # Ask the program for the status, when a wait or test has seen the request complete.
    cdef int query(self) except -1
    # The last handle is let go of: free what it holds, now or when it is complete.
    cdef int free(self) except -1
