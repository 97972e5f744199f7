# The BTL management layer: which BTLs lead to a peer, in which order, and who carries which share.
from ompy.core.proc cimport Proc
from ompy.mca.btl cimport Btl, Endpoint, Receiver

cdef enum:
    INTERFACE = 1


cdef class Route:
    """One BTL towards one peer."""
    cdef readonly Btl btl
    cdef readonly Endpoint endpoint
    cdef readonly double weight                  # this route's share of the list's bandwidth, 0 to 1


cdef class PeerRoutes:
    """The routes to one peer: three lists, as Open MPI's bml/r2 keeps them."""
    cdef readonly Proc proc
    cdef readonly list eager                     # Route, lowest latency: messages up to eager_limit, control
    cdef readonly list send                      # Route, highest exclusivity: fragments, shared out by bandwidth
    cdef readonly list rdma                      # Route that can put or get
    cdef readonly list verdicts                  # (component, chosen: bool, reason), for `ompy explain`
    cdef readonly Route first                    # eager[0], what the fast path takes
    cdef size_t next_eager, next_send

    cdef Route eager_route(self)                 # round robin


cdef class Bml:
    cdef readonly list btls
    # Put `around(btl)` in the place of each BTL: for a PML, before it registers anything and before the first contact.
    cpdef int wrap(self, object around) except -1
    cpdef PeerRoutes add_proc(self, Proc proc)   # raises MPIError with every BTL's reason when none reaches the peer
    cpdef int del_proc(self, Proc proc) except -1
    cpdef int register(self, int tag, Receiver receiver) except -1
    cpdef int register_error(self, object handler) except -1
    cpdef int drop_route(self, Proc proc, Btl btl) except -1     # after an error: go on with the others
    cpdef int finalize(self) except -1
