# What an algorithm is to the engine: a function that writes one call of a collective into a schedule.
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.mca.coll cimport CollectiveCall

cdef struct Tuning:
    Py_ssize_t segment                           # bytes of a piece of a message on its way along a tree; 0: in one piece
    int fanout                                   # children of a tree's top, or the radix of a k-nomial one

ctypedef int (*Build)(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1


cdef class Builder:
    cdef Build build


# Each file of algorithms hands its functions on as `BUILDERS`: (function, algorithm) -> Builder.
cdef Builder builder(Build build)
