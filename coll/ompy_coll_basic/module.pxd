# coll/basic on one communicator.
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.mca.coll cimport CollectiveCall, CollModule
from ompy_coll_basic.choice cimport Choice


cdef class BasicModule(CollModule):
    cdef readonly int crossover
    cdef readonly object forced                  # function's name -> algorithm's name, or "auto"
    cdef list choices                            # by function; None until it is first used

    cdef Choice choice(self, int function, Communicator comm)
    cdef int write(self, Schedule schedule, int function, CollectiveCall call, Communicator comm) except -1
