# Collective accesses to files: ranks that know of one another move their bytes together (MPI-4.1, 14.4.5).
#
# Clauses are numbered and named: the conformance kit (`ompy conformance --mca fcoll NAME`) says which one was broken.
#
# LIFE CYCLE
#    1 offer         Asked with an open file (`context.file`), `query` returns one module, or the reason why not: by what all
#                    ranks know (size of the communicator, hints, parameters), the same on every rank.
#    2 free          `free`, on every rank, gives back all that the module held.
#
# RULES
#    3 bytes         `read_all` and `write_all` are called by all ranks of the file, each with its access, which may be empty;
#                    they move what the fbtl component would move (fbtl.pxd, clause 3), and return this rank's bytes.
#    4 bounds        As fbtl.pxd, clause 4; what several ranks write to the same bytes, one of them has written.
#    5 errors        A rank that can't finish raises, and so does every rank that waits for it: an MPIError that names the file.
#                    A rank whose access has a `problem` can't begin: its caller raises that, those who wait for it hear of it.
#    6 forms         `iread_all` and `iwrite_all` return a request that completes by itself, and any number may be under way,
#                    begun in the same order on every rank; the base class has them in terms of the blocking forms, by a thread
#                    that the file has to itself.  A blocking form waits for them first.
#    7 quiet         A component never prints, aborts or exits, nor writes beside memory that is its own or was given to it.
from ompy.core.file cimport Access, File
from ompy.core.request cimport Request

cdef enum:
    INTERFACE = 1


cdef class FcollModule:
    """One component's service for one file."""
    cdef readonly str component
    cdef readonly File file
    cdef readonly object lane                    # ompy.core.lane.Lane

    cpdef Py_ssize_t read_all(self, Access access) except -1
    cpdef Py_ssize_t write_all(self, Access access) except -1
    cpdef Request iread_all(self, Access access)
    cpdef Request iwrite_all(self, Access access)
    cpdef int free(self) except -1
