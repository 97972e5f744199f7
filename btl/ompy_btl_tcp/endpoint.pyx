# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""A peer as btl/tcp sees it."""
# distutils: extra_compile_args=-Os
from ompy.core.proc cimport Proc
from ompy.mca.btl cimport Btl, Endpoint


cdef class TcpEndpoint(Endpoint):
    def __init__(self, Btl btl not None, Proc proc not None, bytes name not None, bytes me not None, addresses):
        Endpoint.__init__(self, btl, proc)
        self.name = name
        self.me = me
        self.addresses = addresses

    @property
    def is_connected(self):
        """Whether a connection stands."""
        return self.connection is not None


cdef class BundleEndpoint(TcpEndpoint):
    def __init__(self, Btl btl not None, Proc proc not None, bytes name not None, bytes me not None, addresses, ways):
        TcpEndpoint.__init__(self, btl, proc, name, me, addresses)
        self.ways = ways

    @property
    def is_connected(self):
        """Whether any link stands."""
        return self.bundle is not None and len(self.bundle.links) > 0
