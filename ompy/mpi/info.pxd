# Hints: an ordered mapping of strings (MPI-4.1, 10).
from ompy.mpi.handle cimport Handle

cdef class Info(Handle):
    cdef dict entries                            # None: INFO_NULL


# A handle on a new info object that holds a copy of the entries; INFO_NULL's entries are none.
cdef Info new_info(dict entries)
# A copy of the hints in an argument that may be None or INFO_NULL.
cdef dict hints(object info)
