# The portable data representation "external32": big-endian, with sizes that no machine chooses (MPI-4.1, 14.5.2).
from ompy.core.typemap cimport Typemap

# Bytes of one element in external32.
cdef Py_ssize_t external_size(Typemap typemap) except -1
# Convert `count` elements at `address` to `external_size` bytes each at `target`, and back.  MPIError(ERR_CONVERSION) for
# a value that has no place in the other representation.
cdef int pack_external(char *address, Py_ssize_t count, Typemap typemap, char *target) except -1
cdef int unpack_external(const char *source, char *address, Py_ssize_t count, Typemap typemap) except -1
