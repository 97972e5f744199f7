# A BTL around another BTL: the base of those that add something to one that they do not know.
#
#     PML  ->  Wrapper  ->  inner BTL   ~~~>   inner BTL  ->  Relay, one a tag  ->  Wrapper.arrived  ->  PML's Receiver
#
# What a subclass leaves alone goes to the inner BTL and comes from it, with endpoints exchanged: the PML sees those of the
# wrapper, the inner BTL its own.  A wrapper in plain Python overrides `send`, `put`, `get`, a compiled one `sendi` and
# `arrived` too.
from ompy.core.proc cimport Proc
from ompy.mca.btl cimport Btl, Descriptor, Endpoint


cdef class WrapperEndpoint(Endpoint):
    cdef readonly Endpoint inner


cdef class Wrapper(Btl):
    cdef readonly Btl inner
    cdef readonly dict endpoints                       # inner Endpoint -> WrapperEndpoint

    # For subclasses that keep more for a peer.
    cpdef WrapperEndpoint endpoint_of(self, Proc proc, Endpoint inner)
    # A message has come; `endpoint` is None when the inner BTL does not know the sender.
    cdef int arrived(self, int tag, WrapperEndpoint endpoint, const char *data, size_t length) except -1
    # Have the inner BTL carry out a put or get like `like`, from or to `local_address`; `over(descriptor, status)` is
    # called once.
    cpdef int access(self, WrapperEndpoint endpoint, bint is_put, Descriptor like, size_t local_address, bytes local_handle,
                     object over) except -1
