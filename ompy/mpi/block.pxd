# Memory for received objects, recycled: a fresh page costs more than the copy into it.

cdef class Block:
    cdef void *memory
    cdef readonly Py_ssize_t nbytes
    cdef int size_class


cdef Block take_block(Py_ssize_t nbytes)
