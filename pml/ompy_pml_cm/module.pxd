# cm: MPI's point-to-point calls as those of a matching transport layer.
from ompy.core.communicator cimport Communicator
from ompy.core.request cimport Request
from ompy.core.status cimport StatusRecord
from ompy.core.typemap cimport Typemap
from ompy.mca.bml cimport Bml
from ompy.mca.mtl cimport Mtl, MtlRecv, MtlSend
from ompy.mca.pml cimport Message, Pml

cdef class Cm(Pml):
    cdef readonly Mtl mtl
    cdef readonly Bml bml           # what the MTL moves its bytes by, or None

    cdef MtlSend new_send(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                          Communicator comm)
    cdef MtlRecv new_recv(self, size_t address, Py_ssize_t count, Typemap typemap, object allocate, int source, int tag,
                          Communicator comm)
    cdef Request receive_taken(self, MtlRecv request, Message message)
    cdef bint look(self, int source, int tag, Communicator comm, StatusRecord *status) except -1
    cdef Message take_out(self, int source, int tag, Communicator comm)
