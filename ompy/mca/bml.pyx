# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
# distutils: extra_compile_args=-Os
"""Base classes of the BTL management layer.  The contract is in `bml.pxd`."""

interface = INTERFACE


cdef class Route:
    """One BTL towards one peer.

    Parameters:
        btl, endpoint: the way.
        weight: its share of its list's bandwidth, 0 to 1.
    """

    def __init__(self, Btl btl, Endpoint endpoint, double weight=1.0):
        self.btl = btl
        self.endpoint = endpoint
        self.weight = weight

    def __repr__(self):
        return f"<Route {self.btl.name} weight {self.weight:.2f}>"


cdef class PeerRoutes:
    """The routes to one peer, and why each BTL is or is not among them."""

    def __init__(self, Proc proc, list eager, list send, list rdma, list verdicts):
        self.proc = proc
        self.eager = eager
        self.send = send
        self.rdma = rdma
        self.verdicts = verdicts
        self.first = eager[0] if eager else None

    cdef Route eager_route(self):
        cdef size_t count = len(self.eager)
        if count == 1:
            return self.first
        self.next_eager = (self.next_eager + 1) % count
        return <Route> self.eager[self.next_eager]


cdef class Bml:
    """Base of BTL management layers."""

    def __cinit__(self, *args, **kwargs):
        self.btls = []

    cpdef int wrap(self, object around) except -1:
        """Put `around(btl)`, a Btl, in the place of each BTL."""
        self.btls[:] = [around(btl) for btl in self.btls]
        return 0

    cpdef PeerRoutes add_proc(self, Proc proc):
        """Find the routes to a peer, at first contact."""
        raise NotImplementedError

    cpdef int del_proc(self, Proc proc) except -1:
        """Give the routes to a peer back."""
        raise NotImplementedError

    cpdef int register(self, int tag, Receiver receiver) except -1:
        """Active messages of `tag`, whichever BTL they come by, go to `receiver`."""
        cdef Btl btl
        for btl in self.btls:
            btl.register(tag, receiver)
        return 0

    cpdef int register_error(self, object handler) except -1:
        """`handler(btl, proc, exception)` is told of each broken peer."""
        cdef Btl btl
        for btl in self.btls:
            btl.register_error(handler)
        return 0

    cpdef int drop_route(self, Proc proc, Btl btl) except -1:
        """Stop using one BTL towards a peer."""
        raise NotImplementedError

    cpdef int finalize(self) except -1:
        """Close every BTL."""
        raise NotImplementedError
