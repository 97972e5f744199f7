# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The shared pointer in shared memory."""
from libc.stdint cimport int64_t

from ompy.core.file cimport File
from ompy.mca.agreement cimport shared_memory
from ompy.mca.sharedfp cimport INTERFACE, SharedfpModule

from ompy.core.errors import ERR_IO, ERR_OTHER, MPIError

interface = INTERFACE

cdef extern from *:
    """
    #include <stdint.h>
    static inline int64_t ompy_add64(int64_t *number, int64_t more) {
        return __atomic_fetch_add(number, more, __ATOMIC_SEQ_CST);
    }
    static inline int64_t ompy_load64(int64_t *number) { return __atomic_load_n(number, __ATOMIC_SEQ_CST); }
    static inline void ompy_store64(int64_t *number, int64_t value) { __atomic_store_n(number, value, __ATOMIC_SEQ_CST); }
    """
    int64_t add64 "ompy_add64"(int64_t *number, int64_t more) noexcept nogil
    int64_t load64 "ompy_load64"(int64_t *number) noexcept nogil
    void store64 "ompy_store64"(int64_t *number, int64_t value) noexcept nogil


cdef class SharedMemory(SharedfpModule):
    """One file's pointer."""

    def __init__(self, File file not None):
        SharedfpModule.__init__(self, "sm", file)
        self.number = &self.own

    cpdef int open(self) except -1:
        """Collective: the pointer is 0.  Errors: those of `shared_memory`, on every rank."""
        if self.file.communicator.size > 1:
            try:
                self.segment = shared_memory(self.file.communicator, "ompy-sharedfp", sizeof(int64_t))
            except MPIError as error:
                code = ERR_IO if error.code == ERR_OTHER else error.code
                raise MPIError(code, f"{self.file.path}: the shared pointer: {error.detail}") from error
            self.number = <int64_t *> self.segment.address
        return 0

    cpdef Py_ssize_t get(self) except -1:
        """Where it is."""
        return load64(self.number)

    cpdef Py_ssize_t advance(self, Py_ssize_t count) except -1:
        """Add to it; returns where it was."""
        return add64(self.number, count)

    cpdef int put(self, Py_ssize_t value) except -1:
        """Where it is from now on."""
        store64(self.number, value)
        return 0

    cpdef int free(self) except -1:
        """Collective: unmap it."""
        self.number = &self.own
        if self.segment is not None:
            self.segment.close()
        return 0
