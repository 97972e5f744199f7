# From a communicator that its members have agreed on to one that is let go of; see `communicator_lifecycle.pyx`.
from libc.stdint cimport uint64_t

from ompy.core.communicator cimport Communicator
from ompy.core.group cimport Group

cdef Communicator make_communicator(uint64_t context, Group group, dict attributes=*, uint64_t reserve=*, int placement=*,
                                    Communicator whole=*, Group remote_group=*, Communicator local_communicator=*)
cdef Group members_of(Group group, object ranks)

cpdef int free_communicator(Communicator comm) except -1
cpdef int settle(Communicator comm) except -1
cpdef int disconnect(Communicator comm) except -1
cpdef int give_up(Communicator comm) except -1
