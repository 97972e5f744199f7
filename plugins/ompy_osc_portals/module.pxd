# A window on portals.
#
#     WRITE  --> [memory of window A] --> [words of A] --> [memory of window B] --> ...         match bits: names of regions
#     READ   --> the same
#     CHANGE --> the same
#     POSTED ------> [rank 0, A] --> [rank 1, A] --> [rank 0, B] --> ...                        match bits: a window's context
#     COMPLETED ---> the same
#
# How accesses, accumulates and locks are made of put, get and atomics is `ompy.mca.remote_window`'s.  Posts and completes are
# counting events: empty messages, counted by the descriptor that the sender's rank leads to.
from libc.stdint cimport uint32_t, uint64_t

from ompy.mca.remote_window.window cimport RemoteWindow

from ompy_osc_portals.station cimport Station


cdef class PortalsWindow(RemoteWindow):
    cdef Station station
    cdef uint32_t node
    cdef int nodes, regions
    cdef uint64_t context
    cdef list counters                           # entries: each rank's at POSTED, then at COMPLETED
    cdef bint employs                            # the thread that moves the engine
