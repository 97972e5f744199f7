# Messages of the library's own over a communicator, for agreement.
from ompy.core.communicator cimport Communicator

# Each rank's numbers (as many from every rank), in rank order; over an intra-communicator.
cdef list allgather(Communicator comm, list numbers)
# The same for both sides of an inter-communicator: (local rows, remote rows).
cdef tuple meet(Communicator comm, list numbers)
