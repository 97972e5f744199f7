# Communicators (MPI-4.1, chapter 7).
from ompy.core.communicator cimport Communicator
from ompy.mpi.errhandler cimport Errhandler
from ompy.mpi.group cimport Group
from ompy.mpi.info cimport Info
from ompy.mpi.object_collectives cimport ObjectCollectives

cdef class Comm(ObjectCollectives):
    # A handle of this handle's class on a communicator made from its own: inherits what MPI says is inherited.
    cdef Comm new_handle(self, Communicator core, object cls, object info)
    cdef dict inherited_settings(self, object info)
    cdef dict kept_by_duplicate(self)


# A handle on a core communicator, of the class that fits it; COMM_NULL's class for None.
cdef Comm new_comm(object core)
# What a communicator without a parent begins with: the session of its group, and what the program gave; None: nothing.
cdef int set_up(Communicator core, Group group, Info info, Errhandler errhandler) except -1
# Which class fits: "intra", "inter", or a kind of topology -> class.  The modules of the classes fill it in.
cdef dict classes
