# Reductions up trees, and what other collectives build on them.
from ompy.core.communicator cimport Communicator
from ompy.core.operation cimport Operation
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap
from ompy_coll_tuned.tree cimport Shape

# `result` is looked at on the root only; it may be `own`.  Operations that do not commute get their operands in the order of
# ranks, whatever the root.  `segment` is in bytes; 0 is the whole message at once.
cdef int reduce_up(Schedule schedule, size_t own, size_t result, Py_ssize_t count, Typemap typemap, Operation operation,
                   int root, Shape shape, int fanout, Py_ssize_t segment, Communicator comm) except -1
