# A message that a matched probe took out of the queues (MPI-4.1, 3.8.2).
from ompy.mpi.handle cimport Handle

cdef class Message(Handle):
    cdef object message                          # ompy.mca.pml.Message, NO_PROC, or None when null
