# File byte transfer layers: one process's bytes to and from a file that an fs component has opened.
#
# Clauses are numbered and named: the conformance kit (`ompy conformance --mca fbtl NAME`) says which one was broken.
#
# LIFE CYCLE
#    1 offer         Asked with an open file (`context.file`), `query` returns one module, or the reason why not, such as a file
#                    that has no descriptor.
#    2 free          `free`, before the fs component closes the file, gives back all that the module held.
#
# RULES
#    3 bytes         An access moves `access.nbytes` bytes of data between memory (`address`, `count`, `typemap`) and the view
#                    `access.view`, from its byte `access.position` on.  Fewer come at the end of the file, and those are then
#                    the first: bytes behind the end that other processes have not written are no data.
#    4 bounds        Bytes of the file that are not in the view stay as they are, whatever others write there at the same time;
#                    so does memory between the typemap's pieces.  A module may read the file between a view's pieces; to write
#                    them back it needs the file for itself: `file.alone`, or the hint romio_ds_write "enable", by which every
#                    rank of the file takes `lock` around each write.
#    5 any thread    Accesses come from several threads at a time.  Each lets the GIL go while the kernel works.
#    6 locks         `lock` waits until no other process has a conflicting range, `unlock` ends it: between processes, also of
#                    other jobs.  `check_atomicity` says whether it can.
#    7 forms         `ipreadv` and `ipwritev` return a request that completes by itself; the base class has them in terms of the
#                    blocking forms, by a thread of the library's.
#    8 errors        MPIErrors of the classes of MPI-4.1, 14.7, whose words name the file.  What had been written before stays.
#    9 quiet         A component never prints, aborts or exits, nor writes beside memory that is its own or was given to it.
from ompy.core.file cimport Access, File
from ompy.core.request cimport Request

cdef enum:
    INTERFACE = 1


cdef class FbtlModule:
    """One component's service for one file."""
    cdef readonly str component
    cdef readonly File file

    cpdef Py_ssize_t preadv(self, Access access) except -1
    cpdef Py_ssize_t pwritev(self, Access access) except -1
    cpdef Request ipreadv(self, Access access)
    cpdef Request ipwritev(self, Access access)

    # Bytes of the file as they are, for those who keep an image of a part of it: `length` at `offset`, into and from memory.
    # Reading returns how many there were before the end.
    cpdef Py_ssize_t fetch(self, size_t address, Py_ssize_t length, Py_ssize_t offset) except -1
    cpdef int store(self, size_t address, Py_ssize_t length, Py_ssize_t offset) except -1

    cpdef bint check_atomicity(self) except -1
    cpdef int lock(self, Py_ssize_t offset, Py_ssize_t length, bint exclusive) except -1
    cpdef int unlock(self, Py_ssize_t offset, Py_ssize_t length) except -1
    cpdef int free(self) except -1
    # Whether what an access meets of the file is in this process's memory already, so that pieces cost a copy each, no call,
    # and no gap.  It may have changed when the access comes.
    cpdef bint is_mapped(self, Access access) except -1
