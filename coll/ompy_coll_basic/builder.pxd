# What an algorithm is to the engine: a function that writes one call of a collective into a schedule.
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.mca.coll cimport CollectiveCall

ctypedef int (*Build)(Schedule schedule, CollectiveCall call, Communicator comm) except -1


cdef class Builder:
    cdef Build build


# Each file of algorithms hands its functions on as `BUILDERS`: (function, algorithm) -> Builder, with the algorithms of
# inter-communicators under the function's name followed by " inter".
cdef Builder builder(Build build)
