# A file that a group of processes opened together (MPI-4.1, 14.1).  The MPI layer's `File` is a handle on one of these.
#
#     communicator     private to the file: its messages meet none of the program's
#     descriptor       the kernel's, or -1 where the file system (fs) component keeps the file itself, behind `handle`
#     module           io: who serves the file; it finds the other four
from ompy.core.communicator cimport Communicator
from ompy.core.request cimport Request
from ompy.core.typemap cimport Typemap
from ompy.core.view cimport View

# Access modes (MPI-4.1, 14.2.1); values follow Open MPI's `mpi.h`.
cpdef enum:
    MODE_CREATE = 1
    MODE_RDONLY = 2
    MODE_WRONLY = 4
    MODE_RDWR = 8
    MODE_DELETE_ON_CLOSE = 16
    MODE_UNIQUE_OPEN = 32
    MODE_EXCL = 64
    MODE_APPEND = 128
    MODE_SEQUENTIAL = 256

# Where a seek counts from (14.4.3), numbered likewise.
cpdef enum:
    SEEK_SET = 600
    SEEK_CUR = 602
    SEEK_END = 604

# Which pointer an access goes by (14.4.1).
cpdef enum:
    EXPLICIT, INDIVIDUAL, SHARED


cdef class Access:
    """One access to a file: what in memory, and what in the view."""
    cdef public size_t address
    cdef public Py_ssize_t count
    cdef public Typemap typemap
    cdef public object owner                     # keeps the program's memory alive
    cdef public bint writing, collective
    cdef public bint detached                    # it goes on by itself, and the program with it
    cdef public int pointer
    cdef public Py_ssize_t offset                # in etypes, where the pointer is EXPLICIT
    cdef public View view                        # as it was when the access began
    cdef public Py_ssize_t position, nbytes      # bytes of data: the first one in the view, and how many
    cdef public object settle                    # of a read, None or function(bytes moved) -> bytes of the program's data
    # Why this rank has no part in a collective access that others wait in: an exception, which the caller of the io component
    # raises when that has returned; or None.
    cdef public object problem

    # It has that problem, and so no bytes; the first problem counts.
    cpdef int refuse(self, object problem) except -1


# Held by a thread that reads bytes of the file, changes them and writes them back: range locks part processes only.  A context
# manager for components in plain Python.
cdef class Turn:
    cdef object lock
    cdef unsigned long holder                    # the thread, or 0
    cdef unsigned long forks                     # that this process comes from, as the lock was made
    cdef str path

    # Waits for other threads.  A signal handler that asks for what its own thread holds has ERR_OTHER: nobody would ever let
    # it in.
    cpdef int acquire(self) except -1
    cpdef int release(self) except -1


cdef class File:
    cdef readonly Communicator communicator
    cdef readonly str path
    cdef readonly int mode
    cdef readonly bint alone                     # nobody else has it open: one process, and MODE_UNIQUE_OPEN
    cdef public object hints                     # ompy.mca.hints.Hints
    cdef public View view
    cdef public bint atomic
    cdef public int descriptor
    cdef public bint readable                    # also with MODE_WRONLY, by whoever writes back what it has read
    cdef public object handle                    # what the fs component keeps for itself
    cdef public object module                    # IoModule
    cdef public dict parts                       # framework -> the module of it that serves the file
    cdef public list verdicts                    # (framework, component, priority, chosen, reason)
    cdef public dict attributes                  # what the MPI layer keeps: error handler
    cdef public Py_ssize_t pending               # independent non-blocking accesses under way
    cdef Request together                        # the last collective access that goes on by itself, while it does, or None
    cdef public object split                     # (kind, request) of a collective access between its begin and its end, or None
    cdef Py_ssize_t calls                        # of the program's, under way in this process: it can't be closed meanwhile
    cdef set callers                             # threads of lanes that are in a function of the program's for an access
    cdef readonly bint freed

    # Collective accesses that go on by themselves speak to the other ranks over `communicator`, too: whoever is about to waits
    # until this rank's are over.
    cpdef int settle(self) except -1
    # Whether a call on it, or a function of the program's for an access to it, is under way: this thread can't close it then.
    cdef bint in_use(self) except -1

    cdef readonly Turn turn


# An access that a thread of the library's carries out (`ompy.core.lane`); its result is the number of bytes.
cdef class FileRequest(Request):
    cdef readonly File file
    cdef readonly Access access
    cdef public bint taken                       # a lane has it
    cdef object work                             # function(access) -> bytes, which blocks

    cdef Py_ssize_t settled(self, Py_ssize_t nbytes) except -1
