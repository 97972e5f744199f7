# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""One-sided communication by remote memory access and remote atomics of BTLs (MPI-4.1, chapter 12)."""
from ompy.core.window cimport Window
from ompy.mca.bml cimport Bml, PeerRoutes, Route
from ompy.mca.btl cimport FLAG_ATOMICS, FLAG_GET
from ompy.mca.osc cimport INTERFACE
from ompy.mca.remote_window.ways cimport Way

interface = INTERFACE


cdef class RdmaWindow(RemoteWindow):
    """One window over remote memory access.

    Parameters:
        window: which.
        bml: leads to the BTLs.
        native: whether those that have put, get and atomics are used as they are.
    """

    def __init__(self, Window window not None, Bml bml not None, bint native):
        RemoteWindow.__init__(self, "rdma", window, bml)
        self.native = native

    cdef int find_native(self, Way way, PeerRoutes routes) except -1:
        cdef Route route
        if not self.native:
            return 0
        for route in routes.rdma:
            if route.btl.flags & FLAG_ATOMICS and route.btl.flags & FLAG_GET \
                    and route.btl.put_alignment == 1 and route.btl.get_alignment == 1:
                way.native = route.btl
                way.endpoint = route.endpoint
                return 0
        return 0
