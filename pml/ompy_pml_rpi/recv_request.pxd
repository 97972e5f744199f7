# A receive: which message it takes, and where the bytes go.
from libc.stdint cimport uint64_t

from ompy.core.typemap cimport Typemap
from ompy.mca.rpi cimport Envelope, Incoming

from ompy_pml_rpi.layer cimport Layer
from ompy_pml_rpi.scope cimport Scope


cdef class RecvRequest(Incoming):
    cdef Layer layer
    cdef Scope communicator_scope
    cdef uint64_t placed                         # bytes taken, those for which there is no room too
    cdef bint found                              # its message

    cdef int prepare(self, Layer layer, Scope scope, size_t address, Py_ssize_t count, Typemap typemap, object allocate,
                     int source, int tag) except -1
    # Begin, without a component that looks for a message: one is at hand.
    cdef int expect(self) except -1
