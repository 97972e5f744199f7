# coll/tuned on one communicator.
from ompy.core.communicator cimport Communicator
from ompy.mca.scheduled_coll cimport ScheduledColl
from ompy_coll_tuned.decision cimport Decision


cdef class TunedModule(ScheduledColl):
    cdef readonly object settings                # TunedSettings
    cdef list decisions                          # by function; None until it is first used

    cdef Decision decision(self, int function, Communicator comm)
