# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""Files (MPI-4.1, chapter 14): the handle's class and its null handle.

This version of ompy makes no File objects: the methods that would raise NotImplementedError, as mpi4py's do over a library
that lacks them, so that programs can look for another way.
"""

from ompy.mpi.handle cimport Handle, predefine

__all__ = [
    "FILE_NULL", "File", "MODE_APPEND", "MODE_CREATE", "MODE_DELETE_ON_CLOSE", "MODE_EXCL", "MODE_RDONLY", "MODE_RDWR",
    "MODE_SEQUENTIAL", "MODE_UNIQUE_OPEN", "MODE_WRONLY",
]

# Access modes (MPI-4.1, 14.2.1), numbered as in Open MPI's mpi.h.
MODE_CREATE = 1
MODE_RDONLY = 2
MODE_WRONLY = 4
MODE_RDWR = 8
MODE_DELETE_ON_CLOSE = 16
MODE_UNIQUE_OPEN = 32
MODE_EXCL = 64
MODE_APPEND = 128
MODE_SEQUENTIAL = 256


cdef class File(Handle):
    """A file that a group of processes opens together.  Only the null handle exists so far (MPI-4.1, chapter 14)."""

    def __cinit__(self, File file=None):
        pass

    cdef type family(self):
        return File

    @classmethod
    def Open(cls, comm, filename, amode=MODE_RDONLY, info=None):
        """Open a file (MPI-4.1, 14.2.1).  Raises NotImplementedError."""
        raise NotImplementedError("File.Open: this version of ompy has no parallel I/O; open the file in each process")

    @classmethod
    def Delete(cls, filename, info=None):
        """Delete a file (MPI-4.1, 14.2.3).  Raises NotImplementedError."""
        raise NotImplementedError("File.Delete: this version of ompy has no parallel I/O; use os.remove")


FILE_NULL = predefine(File(), "FILE_NULL")
