# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Every collective over point-to-point messages: blocking, non-blocking and persistent from the same schedules."""
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.mca.coll cimport FUNCTION_COUNT, INTERFACE, CollectiveCall
from ompy.mca.scheduled_coll cimport ScheduledColl
from ompy_coll_basic.choice cimport Choice

from ompy.mca.coll import FUNCTIONS

interface = INTERFACE


cdef class BasicModule(ScheduledColl):
    """The collectives of one communicator.

    Parameters:
        comm: the communicator.
        crossover: linear algorithms up to this many processes, logarithmic ones above.
        forced: function's name -> name of the algorithm to use; others choose by themselves.
    """

    def __init__(self, Communicator comm not None, int crossover, forced):
        self.component = "basic"
        self.crossover = crossover
        self.forced = forced
        self.choices = [None] * FUNCTION_COUNT

    cdef Choice choice(self, int function, Communicator comm):
        cdef Choice choice = self.choices[function]
        if choice is None:
            choice = Choice(function, comm, self.crossover, self.forced.get(FUNCTIONS[function], "auto"))
            self.choices[function] = choice
        return choice

    cdef int write(self, Schedule schedule, int function, CollectiveCall call, Communicator comm) except -1:
        return self.choice(function, comm).choose(call, comm).build(schedule, call, comm)

    def explain(self, int function, Communicator comm not None, Py_ssize_t nbytes, bint commutative=True):
        """[(algorithm, whether it would serve a block of so many bytes, when it is taken)], in the order asked."""
        return self.choice(function, comm).explain(nbytes)
