# Files: what a process does with one that it opened (MPI-4.1, chapter 14).
#
# Clauses are numbered and named: the conformance kit (`ompy conformance --mca io NAME`) says which one was broken.
#
# LIFE CYCLE
#    1 offer         Asked with a file that is about to be opened (`context.file`, which has path and mode), `query` returns one
#                    module, or the reason why not: by what all ranks know, the same on every rank.
#    2 open          `open` is collective: it opens the file in the file system, as `file.mode` says (MODE_CREATE, MODE_EXCL,
#                    MODE_APPEND), chooses who serves it below where it asks other frameworks, and fails on every rank or on
#                    none.  Both pointers are then 0, with MODE_APPEND at the end of the file.
#    3 close         Collective.  The layer above has seen every access of this process's through.  With MODE_DELETE_ON_CLOSE
#                    the file is then gone.
#    4 free          When `close` returns, everything that was held for the file is given back; the caller then frees the
#                    communicator.
#
# ACCESSES: any number, by any thread, and under way at the same time.  The layer above has checked arguments and access mode: a
# file opened for reading alone is not written, one opened with MODE_SEQUENTIAL is accessed by the shared pointer alone, the
# bytes of an access are whole etypes.
#    5 bytes         `read` and `write` move `access.nbytes` bytes of data between memory (`address`, `count`, `typemap`) and
#                    the view `access.view`, and return how many: fewer than asked for only at the end of the file.
#    6 bounds        Bytes of the file that are not in the view stay as they are, whatever others write there at the same time;
#                    so does memory between the typemap's pieces.
#    7 pointer       Offsets and pointers count etypes of the view (14.4.1).  An access by this process's pointer moves it by
#                    what is asked for, at the call; one with an offset moves none.  `seek` and `tell` (14.4.3).
#    8 shared        No two accesses by the shared pointer get the same etypes; of a collective one each rank's follow those of
#                    lower ranks.  Its `seek` is collective (14.4.4).
#    9 forms         `iread` and `iwrite` return at once, a request that completes by itself.  The access holds the program's
#                    memory and its view until it is over.
#   10 collective    An access with `access.collective` is called by all ranks in the same order; non-blocking ones stand in it
#                    too.  One that a rank can't even begin comes with a `problem` and without bytes: the rank takes its part
#                    all the same, so that the others hear of it, and the layer above then raises the problem.
#
# THE FILE
#   11 view          `set_view` is collective: `file.view` is then the new one, and both pointers are at its start.  Etypes of
#                    different sizes are ERR_NOT_SAME.
#   12 size          `size` tells bytes, on any rank by itself.  `set_size` cuts off or adds zeros, `preallocate` never cuts,
#                    `sync` brings this process's bytes to the device: all three are collective.
#   13 atomic        `set_atomicity` is collective.  While the file is atomic, others see an access whole or not at all
#                    (14.6.1); where that can't be, it is ERR_UNSUPPORTED_OPERATION.
#   14 errors        MPIErrors of the classes of 14.7, which name the file.  In a collective call that one rank can't finish, no
#                    other rank waits for it for ever.  What signal handlers raise is no concern of a module's: the layer above
#                    keeps it until a collective call is over.
#   15 quiet         A component never prints, aborts or exits, nor writes beside memory that is its own or was given to it.
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
