# Messages of the library's own over a communicator, for agreement.
from ompy.core.communicator cimport Communicator
from ompy.core.group cimport Group

# Each rank's numbers (as many from every rank), in rank order; over an intra-communicator.
cdef list allgather(Communicator comm, list numbers)
# The same for both sides of an inter-communicator: (local rows, remote rows).
cdef tuple meet(Communicator comm, list numbers)

# New communicators, and their end; see `communicators.pyx`.
cpdef Communicator duplicate(Communicator comm, dict attributes=*)
cpdef Communicator first_ranks(Communicator comm, int count, dict attributes=*)
cpdef Communicator split(Communicator comm, long long color, int key, dict attributes=*, int placement=*)
cpdef Communicator create_group(Communicator comm, Group group, int tag)
cpdef int free_communicator(Communicator comm) except -1
