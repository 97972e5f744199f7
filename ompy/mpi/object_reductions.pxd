# Reductions of Python objects with an `Op` or a function of two objects.
from ompy.core.communicator cimport Communicator

cdef object reduce_objects(object obj, object op, int root, Communicator comm)
cdef object allreduce_objects(object obj, object op, Communicator comm)
# Combination of the objects of the ranks up to this one (`inclusive`), or before it.
cdef object prefix(object obj, object op, Communicator comm, bint inclusive)
