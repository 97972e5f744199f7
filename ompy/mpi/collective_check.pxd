# Do all ranks mean the same collective?  (parameter `mpi_param_check 2`)
from ompy.core.communicator cimport Communicator
from ompy.mca.coll cimport CollectiveCall

# How a collective is called: forms don't match one another (MPI-4.1, 6.12).
cdef enum Form:
    BLOCKING, NONBLOCKING, PERSISTENT, OBJECTS

# 0 and 1: nothing is compared here.
cdef int check_level

# Compare what every rank is about to call; costs an allgather.  Raises MPIError on every rank when they differ.
cdef int compare_ranks(int function, Form form, CollectiveCall call, Communicator comm) except -1
# The same for a collective of objects, in which buffers don't matter; `op` may be a function.
cdef int compare_objects(int function, object op, int root, Communicator comm) except -1
