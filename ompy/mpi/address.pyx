# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""Addresses of memory (MPI-4.1, 5.1.5)."""

from cpython.buffer cimport Py_buffer, PyBuffer_Release, PyBUF_SIMPLE

from ompy.mpi.memory cimport acquire
from ompy.mpi.sentinels cimport BottomType

__all__ = ["Aint_add", "Aint_diff", "Get_address"]


def Get_address(location) -> int:
    """Address of the first byte of a buffer, for displacements from BOTTOM; 0 for BOTTOM itself and None (MPI-4.1, 5.1.5).

    Raises:
        TypeError: `location` is no buffer.
        BufferError: its memory is not contiguous.
    """
    cdef Py_buffer view
    if location is None or isinstance(location, BottomType):
        return 0
    acquire(location, &view, PyBUF_SIMPLE)
    address = <size_t> view.buf
    PyBuffer_Release(&view)
    return address


def Aint_add(base: int, disp: int) -> int:
    """Address `disp` bytes after the address `base` (MPI-4.1, 5.1.5)."""
    return <Py_ssize_t> base + <Py_ssize_t> disp


def Aint_diff(addr1: int, addr2: int) -> int:
    """Bytes from address `addr2` to address `addr1` (MPI-4.1, 5.1.5)."""
    return <Py_ssize_t> addr1 - <Py_ssize_t> addr2
