# Reductions by the two levels: in the order of ranks where hosts have runs of ranks.
from ompy.mca.coll cimport CollectiveCall

from ompy_coll_han.steps cimport Steps

cdef int reduce(Steps steps, CollectiveCall call) except -1
# `segment` is in bytes; 0 is the whole vector at once.
cdef int allreduce(Steps steps, CollectiveCall call, Py_ssize_t segment) except -1
