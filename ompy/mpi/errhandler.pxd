# Error handlers (MPI-4.1, 9.3), and the boundary at which a core MPIError meets one.
from ompy.mpi.handle cimport Handle

cdef class ErrorHandler:
    cdef readonly str name
    cdef readonly str kind                       # "Comm", "Win", "File", "Session"; "" for the predefined ones
    cdef readonly object function                # what the program gave: function(handle, code); None for the predefined ones


cdef class Errhandler(Handle):
    cdef ErrorHandler errhandler                 # None: ERRHANDLER_NULL


# What every public method does with a core MPIError (or any other exception, which it raises as it is): hand it to the
# error handler found in `attributes["errhandler"]` of the core object behind `holder`, then raise it as MPI.Exception.
#
#     try:
#         pml.send(...)
#     except MPIError as error:
#         report(self, self.comm.attributes, error)
cdef int report(Handle holder, dict attributes, object error) except -1

# The four methods that Comm, Win, File and Session share.
cdef Errhandler create_errhandler(str kind, object function)
cdef Errhandler get_errhandler(dict attributes)
cdef int set_errhandler(dict attributes, str kind, Errhandler errhandler) except -1
cdef int call_errhandler(Handle holder, dict attributes, int code) except -1
