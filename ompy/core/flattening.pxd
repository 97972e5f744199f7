# Datatypes as bytes, for a process that has to lay out data by a type that another one made.
#
#     origin    Typemap --flatten--> bytes        the loop program, the signature and the bounds
#     target    bytes --rebuild--> Typemap        equal in all that moves data; without name and constructor
from ompy.core.typemap cimport Typemap

# Both remember what they did last, so that a type that is used again costs a look into a dict.
cpdef bytes flatten(Typemap typemap)
cpdef Typemap rebuild(bytes description)
