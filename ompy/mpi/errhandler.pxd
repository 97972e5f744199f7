# Error handlers (MPI-4.1, 9.3).  The one set on an object is `attributes["errhandler"]` of its core object, and is called as
# `handler(core object, exception)` by `ompy.mpi.exceptions.hand_over`; none there means ERRORS_RETURN.
from ompy.mpi.handle cimport Handle

cdef class ErrorHandler:
    cdef readonly str name
    cdef readonly str kind                       # "Comm", "Win", "File", "Session"; "" for the predefined ones
    cdef readonly object function                # what the program gave: function(handle, code); None for the predefined ones

    cdef bint counted                            # among those that the program may hold at a time, until one is freed

    cdef int consult(self, object handle, int code) except -1


cdef class Errhandler(Handle):
    cdef ErrorHandler errhandler                 # None: ERRHANDLER_NULL


# The four methods that Comm, Win, File and Session share.
cdef Errhandler create_errhandler(str kind, object function)
cdef Errhandler get_errhandler(dict attributes)
cdef int set_errhandler(dict attributes, str kind, Errhandler errhandler) except -1
cdef int call_errhandler(object subject, int code) except -1

# How to make the handle that a program's handler receives: type of the core object -> function(core object).
cdef dict handle_makers
