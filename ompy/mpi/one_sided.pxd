# The half of `Win` that accesses and synchronises (MPI-4.1, 12.3 and 12.5).
from ompy.core.group cimport Group as CoreGroup
from ompy.core.window cimport Window
from ompy.mca.osc cimport Access
from ompy.mpi.group cimport Group
from ompy.mpi.handle cimport Handle

cdef class OneSided(Handle):
    cdef Window window                           # None: WIN_NULL
    cdef CoreGroup members                       # of the last Post or Start
    cdef list member_ranks                       # theirs in the window

    # The window; raises ERR_WIN for WIN_NULL.
    cdef Window live(self)
    cdef list ranks_of(self, Group group)
    # The access that arguments ask for, without result and operation; None for PROC_NULL, which nothing is to be done for.
    cdef Access access(self, object origin, bint writable, int target_rank, object target)
    cdef Access fetching(self, object origin, object result, object compare, int target_rank, Py_ssize_t target_disp)
    cdef int checked_rank(self, int rank) except -3
