# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
# distutils: extra_compile_args=-Os
"""Base class of components that serve files.  The contract is in `io.pxd`."""

interface = INTERFACE


cdef class IoModule:
    """One component's service for one file.

    Parameters:
        component: the component's name.
        file: the file.
    """

    def __init__(self, str component not None, File file not None):
        self.component = component
        self.file = file

    cpdef int open(self) except -1:
        """Open the file; collective (MPI-4.1, 14.2.1)."""
        raise NotImplementedError

    cpdef int close(self) except -1:
        """Close it; collective (MPI-4.1, 14.2.2)."""
        raise NotImplementedError

    cpdef Py_ssize_t read(self, Access access) except -1:
        """From the file to memory; returns bytes of data (MPI-4.1, 14.4)."""
        raise NotImplementedError

    cpdef Py_ssize_t write(self, Access access) except -1:
        """From memory to the file; returns bytes of data (MPI-4.1, 14.4)."""
        raise NotImplementedError

    cpdef Request iread(self, Access access):
        """The same, going on by itself (MPI-4.1, 14.4)."""
        raise NotImplementedError

    cpdef Request iwrite(self, Access access):
        """The same, going on by itself (MPI-4.1, 14.4)."""
        raise NotImplementedError

    cpdef int seek(self, Py_ssize_t offset, int whence, bint shared) except -1:
        """Move a pointer; collective for the shared one (MPI-4.1, 14.4.3 and 14.4.4)."""
        raise NotImplementedError

    cpdef Py_ssize_t tell(self, bint shared) except -1:
        """Where a pointer is, in etypes (MPI-4.1, 14.4.3 and 14.4.4)."""
        raise NotImplementedError

    cpdef int set_view(self, View view) except -1:
        """See the file so from now on; both pointers go to its start (MPI-4.1, 14.3)."""
        raise NotImplementedError

    cpdef int set_atomicity(self, bint atomic) except -1:
        """Whether each access is one to all ranks (MPI-4.1, 14.6.1)."""
        raise NotImplementedError

    cpdef int set_size(self, Py_ssize_t size) except -1:
        """Cut the file off, or make it longer (MPI-4.1, 14.2.4)."""
        raise NotImplementedError

    cpdef int preallocate(self, Py_ssize_t size) except -1:
        """Have room for so many bytes (MPI-4.1, 14.2.5)."""
        raise NotImplementedError

    cpdef Py_ssize_t size(self) except -1:
        """Bytes that it has now (MPI-4.1, 14.2.6)."""
        raise NotImplementedError

    cpdef int sync(self) except -1:
        """What was written is on the device (MPI-4.1, 14.6.1)."""
        raise NotImplementedError
