# Files: what a process does with one that it opened (MPI-4.1, chapter 14).
#
# LIFE CYCLE
#   open     When a file is opened, on every rank of it, each component's `query` sees it (`context.file`), and the one with the
#            highest priority serves it.  `open` is then called on that one; it is collective.  It opens the file in the file
#            system, chooses who serves it in the frameworks below, and fails on every rank or on none.
#   access   Any number of accesses, by any thread, and under way at the same time.
#   close    Collective.  The layer above has seen every access of this process's through.  When it returns, everything that
#            was held for the file is given back; the caller then frees the communicator.
#
# RULES
#   * The layer above has checked arguments and access mode: a file opened for reading alone is not written, one opened with
#     MODE_SEQUENTIAL is accessed by the shared pointer alone, the bytes of an access are whole etypes.
#   * Offsets and pointers count etypes of the view (14.4.1): an access by a pointer moves it by what is asked for, at the call.
#   * `read` and `write` return the number of bytes of data that were moved: fewer than asked for only at the end of the file.
#     Bytes of the file that are not in the view stay as they are, whatever others write there at the same time.
#   * `iread` and `iwrite` return at once.  The access holds the program's memory and its view until it is over.
#   * A collective access (`access.collective`) is called by all ranks in the same order; non-blocking ones stand in it too.
#   * Errors are MPIErrors of the classes of 14.7 and name the file.  In a collective access that one rank can't finish, no
#     other rank waits for it for ever.  One that a rank can't even begin comes with a `problem` and without bytes: the rank
#     takes its part all the same, so that the others hear of it, and the layer above then raises the problem.
from ompy.core.file cimport Access, File
from ompy.core.request cimport Request
from ompy.core.view cimport View

cdef enum:
    INTERFACE = 1


cdef class IoModule:
    """One component's service for one file."""
    cdef readonly str component
    cdef readonly File file

    cpdef int open(self) except -1
    cpdef int close(self) except -1

    # -- accesses (14.4)
    cpdef Py_ssize_t read(self, Access access) except -1
    cpdef Py_ssize_t write(self, Access access) except -1
    cpdef Request iread(self, Access access)
    cpdef Request iwrite(self, Access access)

    # -- pointers: `shared` or this process's own
    cpdef int seek(self, Py_ssize_t offset, int whence, bint shared) except -1
    cpdef Py_ssize_t tell(self, bint shared) except -1

    # -- the rest; all but `size` are collective
    cpdef int set_view(self, View view) except -1
    cpdef int set_atomicity(self, bint atomic) except -1
    cpdef int set_size(self, Py_ssize_t size) except -1
    cpdef int preallocate(self, Py_ssize_t size) except -1
    cpdef Py_ssize_t size(self) except -1
    cpdef int sync(self) except -1
