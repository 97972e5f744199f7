# cython: language_level=3, binding=False
# distutils: extra_compile_args=-Os
"""Memory as Python authors of components see it: addresses become memoryviews and back."""
from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBUF_WRITE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact
from cpython.memoryview cimport PyMemoryView_FromMemory

cdef extern from *:
    """
    #include <stdlib.h>
    #ifdef __GLIBC__
    #include <malloc.h>
    static int ompy_keep_freed(int piece, int total) {
        return mallopt(M_MMAP_THRESHOLD, piece) && mallopt(M_TRIM_THRESHOLD, total);
    }
    #else
    static int ompy_keep_freed(int piece, int total) { return 0; }
    #endif
    """
    bint mallopt_to_keep "ompy_keep_freed"(int piece, int total) noexcept


cpdef object view(size_t address, Py_ssize_t nbytes, bint readonly=False):
    """A memoryview of `nbytes` bytes at `address`.  Nothing keeps the memory alive: the caller must."""
    if address == 0 or nbytes <= 0:
        return memoryview(b"") if readonly else memoryview(bytearray())
    return PyMemoryView_FromMemory(<char *> address, nbytes, PyBUF_READ if readonly else PyBUF_WRITE)


cpdef size_t address_of(object buffer) except? 0:
    """The address of a contiguous buffer's first byte.  The caller keeps the object alive."""
    cdef Py_buffer held
    if PyBytes_CheckExact(buffer):
        return <size_t> PyBytes_AS_STRING(buffer)
    PyObject_GetBuffer(buffer, &held, PyBUF_SIMPLE)
    cdef size_t address = <size_t> held.buf
    PyBuffer_Release(&held)
    return address


def keep_freed(int piece, int total) -> bool:
    """Have `malloc` keep freed memory for the next time instead of giving it back to the system.

    A page from the system costs more than the copy into it, and a library that makes each message's memory anew (ZeroMQ) would
    have all its pages made anew.

    Parameters:
        piece: up to so many bytes a block is kept, at most 32 MiB.
        total: bytes of free memory at the end of the heap, from which on it goes back after all.

    Returns whether the C library can be told so.
    """
    return mallopt_to_keep(piece, total)
