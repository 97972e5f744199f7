# A datatype as the engine sees it: where the bytes of one element lie (MPI-4.1, 5.1).
#
# The MPI layer's `Datatype` is a handle on one of these.  A typemap is immutable once made, so it may be shared by any
# number of handles, requests and communicators.

cdef class Typemap:
    cdef readonly Py_ssize_t size                # bytes of data in one element
    cdef readonly Py_ssize_t extent              # step from one element to the next, in bytes
    cdef readonly Py_ssize_t lower_bound
    cdef readonly Py_ssize_t true_extent         # first to last byte of data
    cdef readonly Py_ssize_t true_lower_bound
    cdef readonly bint contiguous                # n elements are n * size bytes from offset 0: memcpy will do
    cdef readonly int basic                      # code of the predefined type of every entry when all are alike, else -1
    cdef readonly Py_ssize_t alignment           # largest alignment of an entry, in bytes


# Number of bytes between `address` and the first and the last byte of data of `count` elements.
cdef Py_ssize_t span(Typemap typemap, Py_ssize_t count, Py_ssize_t *first) except -1
