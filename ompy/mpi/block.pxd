# Memory for received objects, recycled: a fresh page costs more than the copy into it.

cdef class Block:
    cdef void *memory
    cdef readonly Py_ssize_t nbytes
    cdef int size_class


cdef Block take_block(Py_ssize_t nbytes)
# Some bytes of a message, as an object of its own: whose `memoryview(...).obj` is asked for has no more than those.
cdef object part_of(object owner, char *address, Py_ssize_t nbytes)
