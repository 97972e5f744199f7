# Collectives that reduce, with predefined operations on contiguous data.
from ompy.mca.coll cimport CollectiveCall

from ompy_coll_sm.area cimport Area

cdef int reduce(Area area, CollectiveCall call) except -1
cdef int allreduce(Area area, CollectiveCall call) except -1
cdef int reduce_scatter_block(Area area, CollectiveCall call) except -1
cdef int reduce_scatter(Area area, CollectiveCall call) except -1
cdef int scan(Area area, CollectiveCall call, bint inclusive) except -1
