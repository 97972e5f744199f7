# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True
"""Windows for one-sided communication (MPI-4.1, chapter 12): the handle's class and its null handle.

This version of ompy makes no Win objects: the methods that would raise NotImplementedError, as mpi4py's do over a library
that lacks them, so that programs can look for another way.
"""

from ompy.mpi.handle cimport Handle, predefine

__all__ = ["WIN_NULL", "Win"]


cdef class Win(Handle):
    """A window: memory that other processes read and write.  Only the null handle exists so far."""

    def __cinit__(self, Win win=None):
        pass

    cdef type family(self):
        return Win

    @classmethod
    def Create(cls, memory, disp_unit=1, info=None, comm=None):
        """A window on memory of the program's (MPI-4.1, 12.2.1).  Raises NotImplementedError."""
        refuse("Win.Create")

    @classmethod
    def Allocate(cls, size, disp_unit=1, info=None, comm=None):
        """A window on new memory (MPI-4.1, 12.2.2).  Raises NotImplementedError."""
        refuse("Win.Allocate")

    @classmethod
    def Allocate_shared(cls, size, disp_unit=1, info=None, comm=None):
        """A window on memory that the processes of a host share (MPI-4.1, 12.2.3).  Raises NotImplementedError."""
        refuse("Win.Allocate_shared")

    @classmethod
    def Create_dynamic(cls, info=None, comm=None):
        """A window to which memory is attached later (MPI-4.1, 12.2.4).  Raises NotImplementedError."""
        refuse("Win.Create_dynamic")


cdef object refuse(str name):
    raise NotImplementedError(f"{name}: this version of ompy has no one-sided communication; use point-to-point messages")


WIN_NULL = predefine(Win(), "WIN_NULL")
