# Collectives that move data.
from ompy.core.convertor cimport Convertor
from ompy.mca.coll cimport CollectiveCall

from ompy_coll_sm.area cimport Area

cdef int barrier(Area area) except -1
cdef int bcast(Area area, CollectiveCall call) except -1
cdef int gather(Area area, CollectiveCall call) except -1
cdef int scatter(Area area, CollectiveCall call) except -1
cdef int allgather(Area area, CollectiveCall call) except -1
cdef int alltoall(Area area, CollectiveCall call) except -1

# A rank's block to itself: so many bytes, with what `convertor_for` makes of each side.
cdef int copy_own(size_t source, Convertor sent, size_t target, Convertor received, size_t total) except -1
