# Who this process is, and who others are.
from ompy.core.communicator cimport Communicator

# The communicator behind COMM_WORLD; None before bring-up.
cdef Communicator world

# A process as any other process knows it: (job, rank in its world); and the index of one that is known so.
# Errors: ERR_UNSUPPORTED_OPERATION for a process of a job that this one is not connected to.
cdef tuple identity(int index)
cdef int index_of(tuple who) except -1
