# New communicators; see `communicators.pyx`.
from ompy.core.communicator cimport Communicator
from ompy.core.group cimport Group

cpdef Communicator duplicate(Communicator comm, dict attributes=*)
cpdef Communicator first_ranks(Communicator comm, int count, dict attributes=*)
cpdef Communicator split(Communicator comm, long long color, int key, dict attributes=*, int placement=*)
cpdef Communicator create_group(Communicator comm, Group group, int tag)
