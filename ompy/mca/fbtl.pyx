# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
# distutils: extra_compile_args=-Os
"""Base class of components that move a file's bytes.  The contract is in `fbtl.pxd`."""
from ompy.core.file cimport FileRequest

from ompy.core.errors import ERR_UNSUPPORTED_OPERATION, MPIError
from ompy.core.lane import shared as lane

interface = INTERFACE


cdef class FbtlModule:
    """One component's service for one file.

    Parameters:
        component: the component's name.
        file: the file, open.
    """

    def __init__(self, str component not None, File file not None):
        self.component = component
        self.file = file

    cpdef Py_ssize_t preadv(self, Access access) except -1:
        """From the file to memory; returns bytes of data."""
        raise NotImplementedError

    cpdef Py_ssize_t pwritev(self, Access access) except -1:
        """From memory to the file; returns bytes of data."""
        raise NotImplementedError

    cpdef Request ipreadv(self, Access access):
        """The same, going on by itself."""
        cdef FileRequest request = FileRequest(self.file, access, self.preadv)
        request.put_on(lane)
        return request

    cpdef Request ipwritev(self, Access access):
        """The same, going on by itself."""
        cdef FileRequest request = FileRequest(self.file, access, self.pwritev)
        request.put_on(lane)
        return request

    cpdef Py_ssize_t fetch(self, size_t address, Py_ssize_t length, Py_ssize_t offset) except -1:
        """Bytes of the file as they are; returns how many there were before its end."""
        raise NotImplementedError

    cpdef int store(self, size_t address, Py_ssize_t length, Py_ssize_t offset) except -1:
        """Write bytes as they are."""
        raise NotImplementedError

    cpdef bint check_atomicity(self) except -1:
        """Whether `lock` works on this file."""
        return False

    cpdef int lock(self, Py_ssize_t offset, Py_ssize_t length, bint exclusive) except -1:
        """Wait until no other process has a conflicting range."""
        raise MPIError(ERR_UNSUPPORTED_OPERATION, f"{self.file.path}: fbtl/{self.component} has no locks")

    cpdef int unlock(self, Py_ssize_t offset, Py_ssize_t length) except -1:
        """End what `lock` began."""
        raise MPIError(ERR_UNSUPPORTED_OPERATION, f"{self.file.path}: fbtl/{self.component} has no locks")

    cpdef int free(self) except -1:
        """The file is about to be closed."""
        return 0

    cpdef bint is_mapped(self, Access access) except -1:
        """Whether its pieces cost a copy each, and no call."""
        return False
