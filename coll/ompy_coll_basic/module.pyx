# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Every collective over point-to-point messages: blocking, non-blocking and persistent from the same schedules."""
from cpython.mem cimport PyMem_Malloc

from ompy.core.communicator cimport Communicator
from ompy.core.request cimport Request
from ompy.core.schedule cimport Schedule, make_schedule, recycle, take_schedule
from ompy.mca.coll cimport FUNCTION_COUNT, INTERFACE, NEIGHBOR_ALLGATHER, CollectiveCall, CollModule
from ompy_coll_basic.choice cimport Candidate, Choice

from ompy.core.board import OPERATIONS
from ompy.mca.coll import FUNCTIONS

interface = INTERFACE

# What the job board calls each function.
cdef int operations[FUNCTION_COUNT]
for function, name in enumerate(FUNCTIONS):
    operations[function] = OPERATIONS.index(name.capitalize())


cdef Py_ssize_t *packed(Py_ssize_t *counts, int blocks) except NULL:
    """Displacements of blocks that lie one after the other."""
    cdef Py_ssize_t *displacements = <Py_ssize_t *> PyMem_Malloc(max(blocks, 1) * sizeof(Py_ssize_t))
    cdef int block
    if displacements == NULL:
        raise MemoryError()
    displacements[0] = 0
    for block in range(1, blocks):
        displacements[block] = displacements[block - 1] + counts[block - 1]
    return displacements


cdef class BasicModule(CollModule):
    """The collectives of one communicator.

    Parameters:
        comm: the communicator.
        crossover: linear algorithms up to this many processes, logarithmic ones above.
        forced: function's name -> name of the algorithm to use wherever it can serve; others choose by themselves.
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
        cdef Candidate candidate = self.choice(function, comm).choose(call, comm)
        cdef bint around = function >= NEIGHBOR_ALLGATHER
        if call.send_counts != NULL and call.send_displacements == NULL and call.send_types is None:
            blocks = len(comm.attributes["topology"].out_neighbors) if around else comm.remote_size
            call.send_displacements = packed(call.send_counts, blocks)
        if call.recv_counts != NULL and call.recv_displacements == NULL and call.recv_types is None:
            blocks = len(comm.attributes["topology"].in_neighbors) if around else comm.remote_size
            call.recv_displacements = packed(call.recv_counts, blocks)
        schedule.buffer = call.owner
        return candidate.build(schedule, call, comm)

    cpdef int run(self, int function, CollectiveCall call, Communicator comm) except -1:
        """Carry the collective out; returns when this rank's part is done."""
        cdef Schedule schedule = take_schedule(comm, operations[function])
        self.write(schedule, function, call, comm)
        schedule.run()
        return recycle(schedule)

    cpdef Request start(self, int function, CollectiveCall call, Communicator comm):
        """Start the collective; the progress engine advances it."""
        cdef Schedule schedule = make_schedule(comm, operations[function])
        self.write(schedule, function, call, comm)
        schedule.start()
        return schedule

    cpdef Request init(self, int function, CollectiveCall call, Communicator comm):
        """The collective as a persistent request, inactive."""
        cdef Schedule schedule = make_schedule(comm, operations[function])
        self.write(schedule, function, call, comm)
        schedule.persist()
        return schedule

    def explain(self, int function, Communicator comm not None, Py_ssize_t nbytes, bint commutative=True):
        """[(algorithm, whether it would serve a block of so many bytes, when it is taken)], in the order asked."""
        return self.choice(function, comm).explain(nbytes, commutative)
