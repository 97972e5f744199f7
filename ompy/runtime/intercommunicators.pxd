# Inter-communicators; see `intercommunicators.pyx`.
from ompy.core.communicator cimport Communicator

# Each rank's numbers (as many from every rank), of both sides of an inter-communicator: (local rows, remote rows).
cdef tuple meet(Communicator comm, list numbers)
