# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Blocking collectives by two levels, where rules say so; all others are the next component's."""
from ompy.core.board import OPERATIONS
from ompy.core.host import host_number
from ompy.core.schedule cimport Schedule, recycle, take_schedule
from ompy.core.signals cimport keep_a_while, raise_kept_a_while
from ompy.mca.agreement import gathered
from ompy.mca.coll import FUNCTIONS
from ompy.mca.coll cimport (
    ALLGATHER, ALLREDUCE, ALLTOALL, BARRIER, BCAST, FUNCTION_COUNT, GATHER, INTERFACE, REDUCE,
)
from ompy_coll_han.decision cimport Candidate
from ompy_coll_han.exchange cimport allgather, alltoall, barrier, bcast, gather, scatter
from ompy_coll_han.levels cimport make_levels
from ompy_coll_han.reduction cimport allreduce, reduce
from ompy_coll_han.steps cimport Steps

interface = INTERFACE

# What the job board calls each function.
cdef int operations[FUNCTION_COUNT]
for function, name in enumerate(FUNCTIONS):
    operations[function] = OPERATIONS.index(name.capitalize())


cdef class HanModule(CollModule):
    """The collectives of one communicator whose processes are on several hosts.

    Parameters:
        settings: the rules.
        hosts: on which the ranks of the job pretend to be, in turn from the first again; none: they are where they are.
        first_calls: that go to the next component before the communicator is divided.
    """

    def __init__(self, settings, list hosts not None, int first_calls):
        super().__init__("han")
        self.settings = settings
        self.hosts = hosts
        self.first_calls = first_calls
        self.decisions = [None] * FUNCTION_COUNT

    cpdef int run(self, int function, CollectiveCall call, Communicator comm) except -1:
        """Carry the collective out; returns when this rank's part is done."""
        cdef Candidate chosen
        if self.settled and self.levels is None:
            return self.hand_on(function, call, comm)
        chosen = self.decision(function, comm).choose(call, comm)
        if chosen is None:
            return self.hand_on(function, call, comm)
        keep_a_while()
        try:
            return self.run_levels(function, call, comm, chosen.segment)
        finally:
            raise_kept_a_while()

    cdef int run_levels(self, int function, CollectiveCall call, Communicator comm, Py_ssize_t segment) except -1:
        """Level by level: the others count on this rank's part in each."""
        cdef Schedule schedule
        cdef Steps steps
        if not self.settled:
            # Calls come in the same order on every rank, and each is judged alike there.
            self.calls += 1
            if self.calls > self.first_calls:
                self.set_up(comm)
        if self.levels is None or not self.keeps_order(call.operation):
            return self.hand_on(function, call, comm)
        schedule = take_schedule(comm, operations[function])
        # What goes on after an exception keeps all memory alive by it.
        schedule.buffer = call
        steps = Steps.__new__(Steps)
        steps.levels, steps.comm, steps.schedule = self.levels, comm, schedule
        steps.show(operations[function])
        if function == ALLREDUCE:
            allreduce(steps, call, segment)
        elif function == BARRIER:
            barrier(steps)
        elif function == BCAST:
            bcast(steps, call, segment)
        elif function == REDUCE:
            reduce(steps, call)
        elif function == ALLGATHER:
            allgather(steps, call)
        elif function == GATHER:
            gather(steps, call)
        elif function == ALLTOALL:
            alltoall(steps, call)
        else:
            scatter(steps, call)
        return recycle(schedule)

    cpdef int free(self) except -1:
        """The communicator is gone; the next one is divided anew."""
        cdef Levels levels = self.levels
        self.levels = None
        self.settled = False
        self.calls = 0
        self.decisions = [None] * FUNCTION_COUNT
        return 0 if levels is None else levels.let_go()

    def explain(self, int function, Communicator comm not None, Py_ssize_t nbytes, bint commutative=True):
        """[(algorithm, whether it would serve a block of so many bytes, when it is taken)], by ascending bytes."""
        if self.settled and self.levels is None:
            return [(self.settings.catalogue.algorithm(FUNCTIONS[function], "flat"), True, "its ranks make no two levels")]
        return self.decision(function, comm).explain(nbytes, commutative or (self.settled and self.levels.in_order))

    cdef bint keeps_order(self, Operation operation) noexcept:
        """Whether the two levels apply an operation as it has to be."""
        return operation is None or operation.commutative or self.levels.in_order

    cdef Decision decision(self, int function, Communicator comm):
        cdef Decision decision = self.decisions[function]
        if decision is None:
            rules, source = self.settings.rules(FUNCTIONS[function], comm.size)
            decision = Decision(function, self.settings.catalogue, rules, source)
            self.decisions[function] = decision
        return decision

    cdef int set_up(self, Communicator comm) except -1:
        """Divide the communicator, all ranks together, with the help of the modules that stand behind this one."""
        # Before it is over this rank's own collectives come here too.
        self.settled = True
        try:
            if self.hosts:
                hosts = [self.hosts[index % len(self.hosts)] for index in comm.group.indices()]
            else:
                hosts = [row[0] for row in gathered(comm, [host_number()])]
            self.levels = make_levels(comm, hosts)
        except BaseException:
            self.settled = False
            raise
        return 0
