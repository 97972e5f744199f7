# pml/rpi: MPI's semantics above a request progression interface.

from ompy.core.communicator cimport Communicator
from ompy.core.request cimport Request
from ompy.core.status cimport StatusRecord
from ompy.core.typemap cimport Typemap
from ompy.mca.pml cimport Message, Pml
from ompy.mca.rpi cimport Detached, Envelope, Rpi

from ompy_pml_rpi.layer cimport Layer
from ompy_pml_rpi.recv_request cimport RecvRequest
from ompy_pml_rpi.scope cimport Scope
from ompy_pml_rpi.send_request cimport SendRequest


cdef class TakenMessage(Message):
    """A message that a matched probe took."""
    cdef Detached detached


cdef class RpiPml(Pml):
    cdef readonly Rpi rpi
    cdef Layer layer
    cdef dict scopes                             # number -> Scope

    cdef SendRequest new_send(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                              Communicator comm)
    cdef RecvRequest new_recv(self, size_t address, Py_ssize_t count, Typemap typemap, object allocate, int source,
                              int tag, Communicator comm)
    cdef bint look(self, RecvRequest wanted, Envelope *found) except -1
    cdef Message take(self, RecvRequest wanted)
    cdef Request receive_taken(self, RecvRequest request, TakenMessage message)
