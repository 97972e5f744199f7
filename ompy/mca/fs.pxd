# File systems: files as a whole.  Their bytes are the fbtl framework's.
#
# Clauses are numbered and named: the conformance kit (`ompy conformance --mca fs NAME`) says which one was broken.
#
# LIFE CYCLE
#    1 offer         Asked with a file that is about to be opened (`context.file`, which has path and mode), `query` returns one
#                    module, or the reason why not: by the path, the same on every rank.
#    2 open          `open` is called once on each rank, on rank 0 first; only there may `create` say that the file is
#                    made, and `exclusive` that it must not be there yet.  Afterwards `file.descriptor` is the kernel's, or
#                    `file.handle` is what the component and the fbtl components that know it need.  Where this process may
#                    only write, `file.readable` is False.
#    3 close         `close`, after the last access.  `delete` removes a file that nobody need have open.
#
# RULES
#    4 alone         Every call is this process's own: who calls, and when, is for the layer above to agree.
#    5 size          `size` is what any rank has made of it by now: `resize` cuts off or adds zeros, `preallocate` never cuts.
#    6 errors        MPIErrors of the classes of MPI-4.1, 14.7, whose words name the file (`ompy.mca.file_errors`).
#    7 quiet         A component never prints, aborts or exits, nor writes beside memory that is its own or was given to it.
from ompy.core.file cimport File

cdef enum:
    INTERFACE = 1


cdef class FsModule:
    """One component's service for one file."""
    cdef readonly str component

    cpdef int open(self, File file, bint create, bint exclusive) except -1
    cpdef int close(self, File file) except -1
    cpdef int delete(self, str path) except -1
    cpdef Py_ssize_t size(self, File file) except -1
    cpdef int resize(self, File file, Py_ssize_t size) except -1
    cpdef int preallocate(self, File file, Py_ssize_t size) except -1
    cpdef int sync(self, File file) except -1
