# Collectives whose parts have different lengths: the v and w forms.
from ompy.core.communicator cimport Communicator
from ompy.mca.coll cimport CollectiveCall

from ompy_coll_sm.area cimport Area

cdef int gatherv(Area area, CollectiveCall call, Communicator comm, int operation) except -1
cdef int scatterv(Area area, CollectiveCall call) except -1
cdef int allgatherv(Area area, CollectiveCall call) except -1
cdef int alltoallv(Area area, CollectiveCall call) except -1
cdef int alltoallw(Area area, CollectiveCall call) except -1
