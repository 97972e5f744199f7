# Groups of processes (MPI-4.1, 7.3): handles on core groups.
from ompy.core.group cimport Group as CoreGroup
from ompy.mpi.handle cimport Handle

cdef class Group(Handle):
    cdef CoreGroup group                         # None: GROUP_NULL
    cdef object session                          # that it comes from (MPI-4.1, 11.3); None: of the world

    cdef Group made(self, CoreGroup group)
    cdef Group without(self, list ranks)


# IDENT, SIMILAR or UNEQUAL.
cdef int compare(CoreGroup first, CoreGroup second) except -1
cdef Group new_group(type cls, CoreGroup core, object session=*)
# The core group of an argument; raises ERR_GROUP for GROUP_NULL.
cdef CoreGroup checked(Group group, str name)
