# cython: language_level=3
"""Memory as Python authors of components see it: addresses become memoryviews and back."""
from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBUF_WRITE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact
from cpython.memoryview cimport PyMemoryView_FromMemory


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
