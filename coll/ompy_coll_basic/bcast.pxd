# Broadcasts, and the trees that other collectives end with.
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap

cdef int send_to_each(Schedule schedule, size_t address, Py_ssize_t count, Typemap typemap, int root,
                      Communicator comm) except -1
cdef int send_down_tree(Schedule schedule, size_t address, Py_ssize_t count, Typemap typemap, int root,
                        Communicator comm) except -1
