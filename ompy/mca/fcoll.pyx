# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
# distutils: extra_compile_args=-Os
"""Base class of components for collective accesses to files.  The contract is in `fcoll.pxd`."""
from ompy.core.file cimport FileRequest

from ompy.core.lane import Lane

interface = INTERFACE


cdef class FcollModule:
    """One component's service for one file.

    Parameters:
        component: the component's name.
        file: the file, open.
    """

    def __init__(self, str component not None, File file not None):
        self.component = component
        self.file = file
        self.lane = Lane()

    cpdef Py_ssize_t read_all(self, Access access) except -1:
        """From the file to every rank's memory; returns this rank's bytes of data."""
        raise NotImplementedError

    cpdef Py_ssize_t write_all(self, Access access) except -1:
        """From every rank's memory to the file; returns this rank's bytes of data."""
        raise NotImplementedError

    cpdef Request iread_all(self, Access access):
        """The same, going on by itself."""
        cdef FileRequest request = FileRequest(self.file, access, self.read_all)
        request.put_on(self.lane)
        return request

    cpdef Request iwrite_all(self, Access access):
        """The same, going on by itself."""
        cdef FileRequest request = FileRequest(self.file, access, self.write_all)
        request.put_on(self.lane)
        return request

    cpdef int free(self) except -1:
        """The file is about to be closed."""
        self.lane.close()
        return 0
