# The pointer that all ranks of a file share (MPI-4.1, 14.4.4): one number, in etypes.
#
# Clauses are numbered and named: the conformance kit (`ompy conformance --mca sharedfp NAME`) says which one was broken.
#
# LIFE CYCLE
#    1 offer         Asked with an open file (`context.file`), `query` returns one module, or the reason why not: by what all
#                    ranks know, the same on every rank.
#    2 open          `open` is collective, with the file: the pointer is 0 then.  Where no pointer can be kept, and files are
#                    worth opening without, `open` succeeds and whatever needs the pointer raises.
#    3 free          `free` is collective too, and leaves nothing behind: no memory, no file.
#
# RULES
#    4 advance       `advance` adds to the number and returns what it was: of any calls, by any ranks at any time, none sees
#                    another's etypes.  `get` reads it.
#    5 order         `ordered` is collective: each rank gets where its `count` etypes begin, those of lower ranks before it, and
#                    the number has grown by all of them.
#    6 set           `set` is collective, with the same value on all ranks, when all have done what they did before: no rank
#                    that has returned from it gets etypes from before.
#    7 quiet         A component never prints, aborts or exits, nor writes beside memory that is its own or was given to it.
from ompy.core.file cimport File

cdef enum:
    INTERFACE = 1


cdef class SharedfpModule:
    """One component's service for one file."""
    cdef readonly str component
    cdef readonly File file

    cpdef int open(self) except -1
    cpdef Py_ssize_t get(self) except -1
    cpdef Py_ssize_t advance(self, Py_ssize_t count) except -1
    # `set`, where only rank 0 has called it and the others wait.
    cpdef int put(self, Py_ssize_t value) except -1
    cpdef int set(self, Py_ssize_t value) except -1
    cpdef Py_ssize_t ordered(self, Py_ssize_t count) except -1
    cpdef int free(self) except -1
