# Messages that are Python objects, whichever call begins them: parcels of `pickling.pxd`.
from ompy.core.communicator cimport Communicator
from ompy.mpi.request cimport Request
from ompy.mpi.status cimport Status

# Calls as a whole, with the communicator's error handler.
cdef int send_object(Communicator comm, object obj, int dest, int tag, int mode) except -1
cdef Request isend_object(Communicator comm, object obj, int dest, int tag, int mode)
cdef object receive_object(Communicator comm, object buf, int source, int tag, Status status)

# Part of calls, which raises MPIError.
cdef Request begin_receive_object(Communicator comm, object buf, int source, int tag)
