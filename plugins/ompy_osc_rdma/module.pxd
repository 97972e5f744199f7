# Windows over BTLs that have put, get and atomics, or over active messages where they have none.
from ompy.mca.remote_window.window cimport RemoteWindow


cdef class RdmaWindow(RemoteWindow):
    cdef bint native
