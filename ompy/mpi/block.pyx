# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# cython: auto_pickle=False
"""Memory for received objects, recycled by size: a page that is new to the process costs more than the copy into it.

Blocks come in powers of two.  What is let go of is kept, by size, up to a limit; the next pointer of the chain of spare
blocks lies in their first bytes:

    spare[20] -> | next | 1 MiB ... | -> | next | 1 MiB ... | -> NULL
"""

from cpython.buffer cimport Py_buffer, PyBuffer_FillInfo
from cpython.memoryview cimport PyMemoryView_FromObject
from libc.stdlib cimport free
from libc.string cimport memset


cdef extern from "stdlib.h" nogil:
    int posix_memalign(void **memory, size_t alignment, size_t size)


cdef enum:
    ALIGNMENT = 64
    SMALLEST_CLASS = 10
    CLASSES = 48

cdef void *spare[CLASSES]
memset(spare, 0, sizeof(spare))
cdef Py_ssize_t spare_bytes = 0
cdef Py_ssize_t SPARE_LIMIT = 64 << 20


cdef class Block:
    """Contiguous writable memory that goes back to the pool when the last object in it is gone."""

    def __dealloc__(self):
        global spare_bytes
        cdef Py_ssize_t capacity = (<Py_ssize_t> 1) << self.size_class
        if self.memory == NULL:
            return
        if spare_bytes + capacity > SPARE_LIMIT:
            free(self.memory)
            return
        (<void **> self.memory)[0] = spare[self.size_class]
        spare[self.size_class] = self.memory
        spare_bytes += capacity

    def __len__(self):
        return self.nbytes

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.memory, self.nbytes, 0, flags)


cdef Block take_block(Py_ssize_t nbytes):
    global spare_bytes
    cdef Block block = Block.__new__(Block)
    cdef int size_class = SMALLEST_CLASS
    cdef size_t capacity
    while ((<Py_ssize_t> 1) << size_class) < nbytes:
        size_class += 1
    capacity = (<size_t> 1) << size_class
    if capacity > <size_t> SPARE_LIMIT:
        capacity = nbytes                        # it is used once
    block.size_class = size_class
    block.memory = spare[size_class]
    if block.memory != NULL:
        spare[size_class] = (<void **> block.memory)[0]
        spare_bytes -= (<Py_ssize_t> 1) << size_class
    elif posix_memalign(&block.memory, ALIGNMENT, capacity) != 0:
        block.memory = NULL
        raise MemoryError(f"no memory for a message of {nbytes} bytes")
    block.nbytes = nbytes
    return block


cdef class Part:
    """Bytes of what the owner keeps."""
    cdef object owner
    cdef char *address
    cdef Py_ssize_t nbytes

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.address, self.nbytes, 0, flags)


cdef object part_of(object owner, char *address, Py_ssize_t nbytes):
    cdef Part part = Part.__new__(Part)
    part.owner, part.address, part.nbytes = owner, address, nbytes
    return PyMemoryView_FromObject(part)
