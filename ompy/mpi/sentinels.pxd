# The special values of buffer arguments (MPI-4.1, 2.5.4), as objects that compare with their integers.

cdef class Sentinel:
    cdef readonly str name
    cdef readonly Py_ssize_t value


cdef class BottomType(Sentinel):
    pass


cdef class InPlaceType(Sentinel):
    pass


cdef class BufferAutomaticType(Sentinel):
    pass


cdef BottomType bottom
cdef InPlaceType in_place
cdef BufferAutomaticType buffer_automatic
