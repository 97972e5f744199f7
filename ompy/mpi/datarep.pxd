# Data representations: what the program's bytes are in a file (MPI-4.1, 14.5).
from ompy.core.typemap cimport Typemap

cdef class Datarep:
    cdef readonly str name
    # How data of a type lies in a file: the same constructors on predefined types of the representation's sizes.
    cdef Typemap laid_out(self, Typemap typemap)
    # Bytes that one element has in a file.
    cdef Py_ssize_t size_of(self, Typemap typemap) except -1
    # `count` elements as the file has them.
    cdef bytearray encode(self, size_t address, Py_ssize_t count, Typemap typemap)
    # The other way, of the first `moved` bytes; returns bytes of the program's data.
    cdef Py_ssize_t decode(self, bytearray data, Py_ssize_t moved, size_t address, Py_ssize_t count, Typemap typemap) except -1


# The representation of that name; None for one that leaves the program's bytes as they are.  MPIError(ERR_UNSUPPORTED_DATAREP).
cdef Datarep datarep_of(str name)
