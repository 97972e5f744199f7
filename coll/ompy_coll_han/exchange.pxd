# Collectives that move data, by the two levels.  Blocks travel packed, in the order of places, as bytes.
from ompy.mca.coll cimport CollectiveCall

from ompy_coll_han.steps cimport Steps

cdef int barrier(Steps steps) except -1
# `segment` is in bytes; 0 is the whole message at once.
cdef int bcast(Steps steps, CollectiveCall call, Py_ssize_t segment) except -1
cdef int gather(Steps steps, CollectiveCall call) except -1
cdef int scatter(Steps steps, CollectiveCall call) except -1
cdef int allgather(Steps steps, CollectiveCall call) except -1
cdef int alltoall(Steps steps, CollectiveCall call) except -1
