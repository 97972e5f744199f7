# The BTL management layer: which BTLs lead to a peer, in which order, and who carries which share.
#
# Clauses are numbered and named: the conformance kit (`ompy conformance --mca bml NAME`) says which one was broken.
#
# LIFE CYCLE
#    1 open          The component's `query` makes the module, once in a process, over the BTLs that were chosen
#                    (`context.chosen("btl")`); `btls` lists them.
#    2 wrap          After `wrap(around)`, before anything is registered, `around(btl)` stands in the place of each BTL: routes
#                    lead over it.
#    3 end           `finalize` gives every BTL's registered memory back and then closes it, once; afterwards `btls` is empty.
#
# ROUTES
#    4 routes        `add_proc` asks BTLs for the peer (`Btl.add_procs`), this process among the peers, and returns its routes:
#                    `eager` and `send` are never empty and lead over BTLs that can send, `rdma` over those that can put or get;
#                    `first` is the first of `eager`.  An endpoint belongs to the peer that was asked for.
#    5 shares        The weights of each list are above 0 and add up to 1, or the list is empty.
#    6 verdicts      Each BTL is in `verdicts` once: chosen or not, with a reason for people.
#    7 unreachable   A peer that no BTL reaches is an MPIError that names the peer and gives each BTL's reason.
#    8 drop          `drop_route` has the peer's routes lead over the others alone, by the same rules; the last one can't be
#                    dropped: MPIError.
#    9 return        `del_proc` gives each endpoint back to its BTL once (`Btl.del_procs`), and forgets `proc.routes`; a peer
#                    without routes is no error.  `add_proc` may come again.
#
# ACTIVE MESSAGES
#   10 register      `register` gives a tag's receiver to every BTL, `register_error` the handler of broken peers.
#   11 delivery      What a PML sends over the routes arrives, in the order that MPI asks for.
#   12 quiet         A component never prints, aborts or exits, nor writes beside memory that is its own or was given to it.
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
    cdef size_t next_eager

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
