# ob1: MPI's matching in software, over any byte transports.
from ompy.core.communicator cimport Communicator
from ompy.core.proc cimport Proc
from ompy.core.request cimport Request
from ompy.core.status cimport StatusRecord
from ompy.core.typemap cimport Typemap
from ompy.mca.bml cimport Bml
from ompy.mca.pml cimport Message, Pml

from ompy_pml_ob1.dispatcher cimport Dispatcher
from ompy_pml_ob1.engine cimport Engine
from ompy_pml_ob1.matching cimport Direct, Matching, Unexpected
from ompy_pml_ob1.recv_request cimport RecvRequest
from ompy_pml_ob1.send_request cimport SendRequest


cdef class DetachedMessage(Message):
    """A message that a matched probe took out of the queues."""
    cdef Unexpected *message
    cdef Matching matching


cdef class Ob1(Pml):
    cdef readonly Bml bml
    cdef readonly Engine engine
    cdef Dispatcher dispatcher
    cdef Request departure          # of the last send that was deferred, until it is handed on

    cdef SendRequest new_send(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                              Communicator comm)
    cdef RecvRequest new_recv(self, size_t address, Py_ssize_t count, Typemap typemap, object allocate, int source,
                              int tag, Communicator comm)
    cdef bint may_wait_directly(self, Matching matching, int source, int tag) noexcept
    cdef RecvRequest wait_directly(self, Matching matching, Direct *direct, Request shown)
    cdef int withdraw_direct(self, Matching matching, Direct *direct) except -1
    cdef int fail_peer(self, Matching matching, Proc proc) except -1
    cdef Unexpected *wait_for_message(self, int source, int tag, Communicator comm) except NULL
    cdef Message detach(self, int source, int tag, Communicator comm)
    cdef Request receive_detached(self, RecvRequest request, DetachedMessage message)
