# A message that a matched probe took out of the queues (MPI-4.1, 3.8.2).
from ompy.core.request cimport Request as CoreRequest
from ompy.core.status cimport StatusRecord
from ompy.mca.pml cimport Message as CoreMessage
from ompy.mpi.buffers cimport Spec
from ompy.mpi.handle cimport Handle

cdef class Message(Handle):
    cdef object message                          # CoreMessage, a NoProc, or None when null

    cdef CoreMessage take(self, StatusRecord *status)
    cdef CoreRequest begin(self, CoreMessage message, const Spec *spec)
    cdef CoreRequest begin_object(self, CoreMessage message)


# A handle on a message; None makes it one on MESSAGE_NO_PROC.
cdef Message new_message(CoreMessage core)
# A receive from MPI_PROC_NULL, complete when it is made.
cdef CoreRequest nothing_received()
# Loader of requests whose buffer is a block with an object in it.
cdef object load_received(CoreRequest core, object kept)
