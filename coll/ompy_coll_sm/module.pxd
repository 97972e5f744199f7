# Collectives among processes of one host, through shared memory.
from ompy.core.communicator cimport Communicator
from ompy.core.operation cimport Operation
from ompy.core.typemap cimport Typemap
from ompy.mca.coll cimport CollectiveCall, CollModule

from ompy_coll_sm.area cimport Area

cdef class SmModule(CollModule):
    cdef Area area                               # None until the first collective
    cdef bint unusable                           # no shared memory: everything is handed on
    cdef size_t chunk
    cdef int spins
    cdef bint crowded
    cdef str backing

    cdef bint serves(self, int function, CollectiveCall call, Communicator comm) except -1
    cdef int set_up(self, Communicator comm) except -1
    cdef int meet(self, Area area, size_t total) except -1
    cdef int barrier(self, Area area) except -1
    cdef int bcast(self, Area area, CollectiveCall call) except -1
    cdef int reduce(self, Area area, CollectiveCall call) except -1
    cdef int allreduce(self, Area area, CollectiveCall call) except -1
    cdef int allreduce_long(self, Area area, size_t source, size_t target, size_t total, Typemap typemap,
                            Operation operation) except -1
    cdef int reduce_scatter_block(self, Area area, CollectiveCall call) except -1
    cdef int scan(self, Area area, CollectiveCall call, bint inclusive) except -1
    cdef int gather(self, Area area, CollectiveCall call) except -1
    cdef int scatter(self, Area area, CollectiveCall call) except -1
    cdef int allgather(self, Area area, CollectiveCall call) except -1
    cdef int alltoall(self, Area area, CollectiveCall call) except -1
