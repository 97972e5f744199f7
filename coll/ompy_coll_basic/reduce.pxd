# Reductions to one rank, and what other collectives build on them.
from ompy.core.communicator cimport Communicator
from ompy.core.operation cimport Operation
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap

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
