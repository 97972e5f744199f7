# Blocking collectives by two levels.
from ompy.core.communicator cimport Communicator
from ompy.core.operation cimport Operation
from ompy.mca.coll cimport CollectiveCall, CollModule

from ompy_coll_han.decision cimport Decision
from ompy_coll_han.levels cimport Levels


cdef class HanModule(CollModule):
    cdef readonly object settings                # HanSettings
    cdef readonly list hosts                     # that ranks pretend to be on; empty mostly
    cdef int first_calls                         # that go to the next component before the communicator is divided
    cdef int calls                               # so far that would have gone by two levels
    cdef Levels levels                           # None before the first call, and where there are no two levels
    cdef bint settled                            # whether there are is known, or being found out
    cdef list decisions                          # by function; None until it is first used

    cdef bint keeps_order(self, Operation operation) noexcept
    cdef int set_up(self, Communicator comm) except -1
    cdef int run_levels(self, int function, CollectiveCall call, Communicator comm, Py_ssize_t segment) except -1
    cdef Decision decision(self, int function, Communicator comm)
