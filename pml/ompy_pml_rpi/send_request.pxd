# A send: its envelope, and its bytes packed as they are asked for.
from ompy.core.typemap cimport Typemap

from ompy_pml_rpi.layer cimport Confirmed, Layer
from ompy_pml_rpi.scope cimport Scope


cdef class SendRequest(Confirmed):
    cdef Scope scope
    cdef size_t fetched

    cdef int prepare(self, Layer layer, Scope scope, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag,
                     int mode) except -1
    # Everything that comes before the component takes over.
    cdef int announce(self) except -1
