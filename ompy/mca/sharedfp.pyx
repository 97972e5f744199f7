# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
# distutils: extra_compile_args=-Os
"""Base class of components that keep a file's shared pointer.  The contract is in `sharedfp.pxd`."""
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t

from ompy.core.communicator cimport Communicator
from ompy.mca.agreement cimport agree, gather, share

from ompy.core.errors import MPIError, code_of

interface = INTERFACE


cdef class SharedfpModule:
    """One component's service for one file.

    Parameters:
        component: the component's name.
        file: the file, open.
    """

    def __init__(self, str component not None, File file not None):
        self.component = component
        self.file = file

    cpdef int open(self) except -1:
        """Collective: the pointer is 0."""
        raise NotImplementedError

    cpdef Py_ssize_t get(self) except -1:
        """Where it is."""
        raise NotImplementedError

    cpdef Py_ssize_t advance(self, Py_ssize_t count) except -1:
        """Add to it; returns where it was."""
        raise NotImplementedError

    cpdef int put(self, Py_ssize_t value) except -1:
        """Where it is from now on; called by one rank, while no other looks at it."""
        raise NotImplementedError

    cpdef int set(self, Py_ssize_t value) except -1:
        """The same by all ranks together, none of which looks at it any more."""
        cdef Communicator comm = self.file.communicator
        problem = None
        if comm.rank == 0:
            try:
                self.put(value)
            except BaseException as error:
                problem = error
        return agree(comm, problem, f"{self.file.path}: the shared pointer can't be set")

    cpdef Py_ssize_t ordered(self, Py_ssize_t count) except -1:
        """Where this rank's etypes begin, behind those of lower ranks; by all ranks together."""
        cdef Communicator comm = self.file.communicator
        cdef int64_t mine = count, before = 0, total = 0
        cdef int64_t base_and_error[2]
        cdef int64_t *counts = <int64_t *> PyMem_Malloc(comm.size * sizeof(int64_t))
        cdef int rank
        if counts == NULL:
            raise MemoryError()
        try:
            gather(comm, &mine, counts, 1)
            for rank in range(comm.size):
                if rank < comm.rank:
                    before += counts[rank]
                total += counts[rank]
        finally:
            PyMem_Free(counts)
        problem = None
        base_and_error[0] = base_and_error[1] = 0
        if comm.rank == 0:
            try:
                base_and_error[0] = self.advance(total)
            except BaseException as error:
                problem = error
                base_and_error[1] = code_of(error)
        share(comm, base_and_error, 2)
        if base_and_error[1]:
            raise problem or MPIError(base_and_error[1], f"{self.file.path}: the shared pointer can't be moved on rank 0, "
                                                         "which has the reason")
        return base_and_error[0] + before

    cpdef int free(self) except -1:
        """Collective: the pointer is used no more."""
        return 0
