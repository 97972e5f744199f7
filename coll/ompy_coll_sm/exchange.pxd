# Collectives that move data.
from ompy.mca.coll cimport CollectiveCall

from ompy_coll_sm.area cimport Area

cdef int barrier(Area area) except -1
cdef int bcast(Area area, CollectiveCall call) except -1
cdef int gather(Area area, CollectiveCall call) except -1
cdef int scatter(Area area, CollectiveCall call) except -1
cdef int allgather(Area area, CollectiveCall call) except -1
cdef int alltoall(Area area, CollectiveCall call) except -1
