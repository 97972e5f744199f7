# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Collectives over point-to-point messages, each call by the algorithm that its rules name."""
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.mca.coll cimport FUNCTION_COUNT, INTERFACE, CollectiveCall
from ompy.mca.scheduled_coll cimport ScheduledColl
from ompy_coll_tuned.decision cimport Candidate, Decision

from ompy.mca.coll import FUNCTIONS

interface = INTERFACE


cdef class TunedModule(ScheduledColl):
    """The collectives of one communicator.

    Parameters:
        settings: the algorithms asked for by name, and the rules.
    """

    def __init__(self, settings):
        self.component = "tuned"
        self.settings = settings
        self.decisions = [None] * FUNCTION_COUNT

    cdef Decision decision(self, int function, Communicator comm):
        cdef Decision decision = self.decisions[function]
        if decision is None:
            rules, source = self.settings.rules(FUNCTIONS[function], comm.size)
            decision = Decision(function, comm, rules, source)
            self.decisions[function] = decision
        return decision

    cdef int write(self, Schedule schedule, int function, CollectiveCall call, Communicator comm) except -1:
        cdef Candidate chosen = self.decision(function, comm).choose(call, comm)
        return chosen.build(schedule, call, comm, chosen.tuning)

    def explain(self, int function, Communicator comm not None, Py_ssize_t nbytes, bint commutative=True):
        """[(algorithm, whether it would serve a block of so many bytes, when it is taken)], by ascending bytes."""
        return self.decision(function, comm).explain(nbytes, commutative)
