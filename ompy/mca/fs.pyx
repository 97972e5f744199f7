# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
# distutils: extra_compile_args=-Os
"""Base class of file system components.  The contract is in `fs.pxd`."""

interface = INTERFACE


cdef class FsModule:
    """One component's service for one file.

    Parameters:
        component: the component's name.
    """

    def __init__(self, str component not None):
        self.component = component

    cpdef int open(self, File file, bint create, bint exclusive) except -1:
        """Open the file in the way that its mode says."""
        raise NotImplementedError

    cpdef int close(self, File file) except -1:
        """No access comes any more."""
        raise NotImplementedError

    cpdef int delete(self, str path) except -1:
        """Remove a file."""
        raise NotImplementedError

    cpdef Py_ssize_t size(self, File file) except -1:
        """Bytes that it has."""
        raise NotImplementedError

    cpdef int resize(self, File file, Py_ssize_t size) except -1:
        """Cut off or add zeros."""
        raise NotImplementedError

    cpdef int preallocate(self, File file, Py_ssize_t size) except -1:
        """Have room for so many bytes, without cutting off."""
        raise NotImplementedError

    cpdef int sync(self, File file) except -1:
        """What this process has written is on the device."""
        raise NotImplementedError
