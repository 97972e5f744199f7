# Collectives among processes of one host, through shared memory.
from ompy.core.communicator cimport Communicator
from ompy.mca.coll cimport CollectiveCall, CollModule

from ompy_coll_sm.area cimport Area
from ompy_coll_sm.arena cimport Room

cdef class SmModule(CollModule):
    cdef Area area                               # None until the first collective
    cdef Room room                               # the memory of the area
    cdef bint unusable                           # no shared memory: everything is handed on
    cdef size_t chunk
    cdef size_t memory
    cdef int spins
    cdef bint crowded
    cdef str backing
    cdef int calls_left                          # before the next round of the engine

    cdef bint serves(self, int function, CollectiveCall call, Communicator comm) except -1
    cdef int set_up(self, Communicator comm) except -1
    cdef int carry_out(self, Area area, int function, CollectiveCall call, Communicator comm) except -1
