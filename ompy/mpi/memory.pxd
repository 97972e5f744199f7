# Raw memory of the program's: the `MPI.buffer` class, and the one way to get at an object's bytes, whatever protocol it
# speaks (Python's buffer protocol, DLPack, the CUDA array interface).
from cpython.buffer cimport Py_buffer

from ompy.core.typemap cimport Typemap

cdef class buffer:
    cdef object __weakref__
    cdef Py_buffer view
    cdef bint held                               # `view` was acquired from another object
    cdef int device                              # DLPack device type; 0 for memory that Python itself vouches for
    cdef Py_ssize_t exports                      # views of it by others that are in use, its slices among them
    cdef Py_buffer outlasting                    # what it was of when it was released, for those that were in use then

    cdef int let_go(self) except -1


# Fill `view` from any object with memory.  `flags` are PyBUF_*; without PyBUF_ND the memory must be contiguous.  Returns
# the DLPack device type, 0 for ordinary memory.  Give the view back with PyBuffer_Release.
cdef int acquire(object source, Py_buffer *view, int flags) except -1
# The data of `count` elements, the first at `offset`, must lie within memory of `nbytes` bytes: ValueError; and not where
# nothing ever lies, in the first page of all memory: MPIError(ERR_BUFFER).  Every count and displacement that a program gives,
# or that follows from the length of a buffer, comes by here.
cdef int check_room(Typemap typemap, Py_ssize_t count, Py_ssize_t offset, const void *base, Py_ssize_t nbytes) except -1
# A buffer over memory that `owner` (None: nobody) keeps alive.
cdef buffer buffer_over(size_t address, Py_ssize_t nbytes, object owner, bint readonly)
# Fresh memory, 64-byte aligned, freed with the buffer.
cdef buffer allocate_buffer(Py_ssize_t nbytes, bint clear)
# The same in the shared heap, where there is one, in pages of its own.
cdef buffer allocate_shared(Py_ssize_t nbytes, bint clear)
