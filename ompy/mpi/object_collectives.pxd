# Collective communication of Python objects (the lower-case methods).
from ompy.core.communicator cimport Communicator
from ompy.mpi.collectives cimport Collectives

cdef class ObjectCollectives(Collectives):
    # With `mpi_param_check 2`: do all ranks call this?
    cdef int compare(self, int function, object op, int root) except -1


# Objects between neighbours: `objects[i]` to rank `targets[i]`, one from each of `sources`; PROC_NULL gives None.
# `crossed`: the lists hold the two sides of each dimension of a grid.
cdef list exchange(list objects, list targets, list sources, bint crossed, Communicator comm)
# `items` as a list of `count` objects, or ValueError.
cdef list checked_items(object items, int count)
# A pickled copy; the object itself when it can't be changed.
cdef object copy_of(object obj)
# Combination of the objects of the ranks up to this one (`inclusive`), or before it.
cdef object prefix(object obj, object op, Communicator comm, bint inclusive)
