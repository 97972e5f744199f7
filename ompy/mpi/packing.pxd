# The first link of Datatype: what a datatype is a handle on, and packing.
from ompy.core.typemap cimport Typemap
from ompy.mpi.handle cimport Handle

cdef class Packing(Handle):
    cdef Typemap typemap                         # None: DATATYPE_NULL

# The typemap of an argument that must not be DATATYPE_NULL.
cdef Typemap checked(Packing datatype)
