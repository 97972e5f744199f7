# Scatters, and the step that reduce_scatter ends with.
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap
from ompy_coll_basic.layout cimport Layout

# The blocks of `source` (looked at on the root only) straight to their ranks; target 0 is the root's own in place.
cdef int from_root(Schedule schedule, Layout *source, size_t target, Py_ssize_t count, Typemap typemap, bint vector,
                   int root, Communicator comm) except -1
