# coll/basic on one communicator.
from ompy.core.communicator cimport Communicator
from ompy.mca.scheduled_coll cimport ScheduledColl
from ompy_coll_basic.choice cimport Choice


cdef class BasicModule(ScheduledColl):
    cdef readonly int crossover
    cdef readonly object forced                  # function's name -> algorithm's name, or "auto"
    cdef list choices                            # by function; None until it is first used

    cdef Choice choice(self, int function, Communicator comm)
