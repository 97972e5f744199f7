# Reductions to one rank, and what other collectives build on them.
from ompy.core.communicator cimport Communicator
from ompy.core.operation cimport Operation
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap
from ompy.mca.coll cimport CollectiveCall

# A rank's contribution: in place, it lies where the result goes.
cdef inline size_t own_address(CollectiveCall call):
    return call.recv_address if call.send_in_place else call.send_address

cdef inline Py_ssize_t own_count(CollectiveCall call):
    return call.recv_count if call.send_in_place else call.send_count

cdef inline Typemap own_type(CollectiveCall call):
    return call.recv_type if call.send_in_place else call.send_type

# `result` is looked at on the root only; it may be `own`.
cdef int reduce_in_turn(Schedule schedule, size_t own, size_t result, Py_ssize_t count, Typemap typemap,
                        Operation operation, int root, Communicator comm) except -1
cdef int reduce_up_tree(Schedule schedule, size_t own, size_t result, Py_ssize_t count, Typemap typemap,
                        Operation operation, int root, Communicator comm) except -1
# The contributions of ranks 0 .. size-1 to `result`, in rank order; that of `local` is at `own` (which may be `result`),
# the others are received.  With `local` -1 all are, from the remote group.
cdef int take_in(Schedule schedule, size_t own, int local, size_t result, Py_ssize_t count, Typemap typemap,
                 Operation operation, int size) except -1
# The same of a remote group that awaits this rank's messages too: received all at once, with the sends of the same round,
# since a group that took them in one by one could wait for the other, which does the same.
cdef int take_in_at_once(Schedule schedule, size_t result, Py_ssize_t count, Typemap typemap, Operation operation,
                         int size) except -1
