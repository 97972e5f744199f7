# What the members of a communicator tell one another, for components that must agree: numbers, errors, memory.
# All are collective.
from libc.stdint cimport int64_t

from ompy.core.communicator cimport Communicator
from ompy.core.request cimport Request
from ompy.core.segment cimport Segment

# Each rank's `count` numbers, in rank order, into room for `count` of each rank.
cdef int gather(Communicator comm, const int64_t *mine, int64_t *all, int count) except -1
# Rank 0's numbers to all.
cdef int share(Communicator comm, int64_t *numbers, int count) except -1
# Memory that all map, zeroed; all are on one host.  Errors: why it can't be had, on every rank.
cpdef Segment shared_memory(Communicator comm, str name, size_t size)
# All are here: a barrier, in which who waits is shown on the job board in `operation`.
cpdef int meet(Communicator comm, int operation) except -1
# The same, to be waited for by the caller.
cdef Request begin_meeting(Communicator comm, int operation)
# All go on, or all raise: `error` is this rank's exception or None, `what` what failed ("run.npy: it can't be opened").
cpdef int agree(Communicator comm, object error, str what) except -1
# All say the same of their arguments in `words` ("size 100"), or all raise ERR_NOT_SAME.
cpdef int same(Communicator comm, str what, str words) except -1
