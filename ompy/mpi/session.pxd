# Sessions (MPI-4.1, 11.3).
from ompy.mpi.handle cimport Handle

cdef class OpenSession:
    cdef readonly dict attributes                # error handler, hints, buffer: as a communicator's
    cdef bint is_open


cdef class Session(Handle):
    cdef OpenSession session                     # None: SESSION_NULL

    # What the handle stands for; raises MPI.Exception(ERR_SESSION) for SESSION_NULL.
    cdef OpenSession live(self)
