# The half of `File` that moves data (MPI-4.1, 14.4).
from ompy.core.file cimport Access, File as CoreFile
from ompy.mpi.buffers cimport Spec
from ompy.mpi.handle cimport Handle
from ompy.mpi.request cimport Request
from ompy.mpi.status cimport Status

# What an access does: which way, with whom, by which pointer.
cdef enum:
    WRITING = 1
    COLLECTIVE = 2
    AT = 0
    OWN = 4
    COMMON = 8


cdef class FileAccess(Handle):
    cdef CoreFile file                           # None: FILE_NULL

    # The file; raises ERR_FILE for FILE_NULL.
    cdef CoreFile live(self)
    cdef int carry_out(self, int how, object offset, object buf, Status status) except -1
    cdef Request begin(self, int how, object offset, object buf)
    cdef int begin_split(self, int how, object offset, object buf) except -1
    cdef int end_split(self, int how, Status status) except -1
    cdef int finish_split(self, Request request, Status status) except -1
    cdef int check(self, int how, Py_ssize_t offset) except -1
    # What the arguments ask for, and `buf` parsed.  Where they are wrong, a collective access has this for its problem.
    cdef Access prepare(self, int how, object offset, object buf, Spec *spec)


# What errors on FILE_NULL happen on: its error handler is that of opening and deleting.
cdef object null_file
