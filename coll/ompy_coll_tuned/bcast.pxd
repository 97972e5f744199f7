# Broadcasts, and the tree that an allreduce may end with.
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap
from ompy_coll_tuned.tree cimport Tree

# `segment` is in bytes; 0 is the whole message at once.
cdef int send_down(Schedule schedule, size_t address, Py_ssize_t count, Typemap typemap, Tree tree,
                   Py_ssize_t segment) except -1
