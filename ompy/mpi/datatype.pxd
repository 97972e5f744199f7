# Datatypes (MPI-4.1, 5.1): handles on a typemap of the core.
#
# What MPI remembers of a datatype besides its bytes is a `Description` in `typemap.description`; all handles on a typemap
# share it.
from ompy.core.typemap cimport Typemap
from ompy.mpi.packing cimport Packing

cdef class Datatype(Packing):
    cdef bint borrowed                           # from `Get_contents`: the datatype outlives a `Free` of this handle

# The predefined datatype for a character code of the buffer protocol ("d", "Zd") or a NumPy type string ("f8");
# KeyError for any other.
cdef Datatype datatype_of_code(object code)
# A handle on the typemap: the predefined object itself (MPI.INT) where there is one.
cdef Datatype datatype_of(Typemap typemap)
# Its Description, made now where nobody has asked for it yet.
cdef object description_of(Typemap typemap)
