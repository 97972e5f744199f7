# The half of `File` that moves data (MPI-4.1, 14.4).
from ompy.core.file cimport File as CoreFile
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


# With it, a call of the program's on a file is under way, in which nobody closes it.  The other ranks wait for this one's part
# in a collective one, and so what signal handlers raise comes at its end.
cdef class Call:
    cdef CoreFile file
    cdef bint collective


cdef class FileAccess(Handle):
    cdef CoreFile file                           # None: FILE_NULL

    # The file; raises ERR_FILE for FILE_NULL.
    cdef CoreFile live(self)
    # The same, for a call on it: a context manager that gives the file.
    cdef Call call(self, bint collective)
    cdef int carry_out(self, int how, object offset, object buf, Status status) except -1
    cdef Request begin(self, int how, object offset, object buf)
    cdef int begin_split(self, int how, object offset, object buf) except -1
    cdef int end_split(self, int how, Status status) except -1


# What errors on FILE_NULL happen on: its error handler is that of opening and deleting.
cdef object null_file
