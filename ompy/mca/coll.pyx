# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""Base classes of collective components.  The contract is in `coll.pxd`."""
cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc

from ompy.mca.frameworks import FUNCTIONS
from ompy.mca.params import registry
from ompy.mca.verdicts import record

interface = INTERFACE


@cython.freelist(16)
cdef class CollectiveCall:
    """What a collective was asked to do; see `coll.pxd`."""

    def __dealloc__(self):
        if (self.send_counts != NULL or self.send_displacements != NULL or self.recv_counts != NULL
                or self.recv_displacements != NULL):
            PyMem_Free(self.send_counts)
            PyMem_Free(self.send_displacements)
            PyMem_Free(self.recv_counts)
            PyMem_Free(self.recv_displacements)

    def set_vectors(self, send_counts=None, send_displacements=None, recv_counts=None, recv_displacements=None):
        """Fill in the arrays from sequences of int, for callers in plain Python; None leaves NULL."""
        set_vector(&self.send_counts, send_counts)
        set_vector(&self.send_displacements, send_displacements)
        set_vector(&self.recv_counts, recv_counts)
        set_vector(&self.recv_displacements, recv_displacements)


cdef int set_vector(Py_ssize_t **target, object values) except -1:
    cdef Py_ssize_t index
    PyMem_Free(target[0])
    target[0] = NULL
    if values is None:
        return 0
    target[0] = <Py_ssize_t *> PyMem_Malloc(max(len(values), 1) * sizeof(Py_ssize_t))
    if target[0] == NULL:
        raise MemoryError()
    for index in range(len(values)):
        target[0][index] = values[index]
    return 0


cdef class CollModule:
    """One component's service for one communicator.

    Parameters:
        component: the component's name.
    """

    def __cinit__(self, *args, **kwargs):
        self.previous = [None] * FUNCTION_COUNT

    def __init__(self, str component not None):
        self.component = component

    def stand_before(self, int function, CollModule module):
        """Say which module would serve the function's blocking form without this one."""
        self.previous[function] = module

    cpdef int run(self, int function, CollectiveCall call, Communicator comm) except -1:
        """Carry the collective out, blocking."""
        raise NotImplementedError(f"coll {self.component} has no blocking {FUNCTIONS[function]}")

    cpdef Request start(self, int function, CollectiveCall call, Communicator comm):
        """Start the collective and return its request."""
        raise NotImplementedError(f"coll {self.component} has no non-blocking {FUNCTIONS[function]}")

    cpdef Request init(self, int function, CollectiveCall call, Communicator comm):
        """A persistent request for the collective, not started."""
        raise NotImplementedError(f"coll {self.component} has no persistent {FUNCTIONS[function]}")

    def explain(self, int function, Communicator comm not None, Py_ssize_t nbytes, bint commutative=True):
        """[(algorithm, whether it would serve a block of so many bytes, when it is taken)], in the order asked.

        An algorithm has a `name` and a `summary`.  Empty: the component has one way for all.
        """
        return []

    cpdef int free(self) except -1:
        """The communicator is gone."""
        return 0


cdef class CollPlan:
    """Which of some modules serves each function of a communicator.

    Parameters:
        serving: for each form, for each function, the number of the module.
        before: (number, function, number of the module that would serve its blocking form without this one).
        verdicts: (function, component, priority, chosen, reason) of each offer.
    """

    def __init__(self, serving not None, list before not None, list verdicts not None):
        cdef int form, function
        for form in range(3):
            for function in range(FUNCTION_COUNT):
                self.serving[form][function] = serving[form][function]
        self.before = before
        self.verdicts = verdicts

    def keep(self, Communicator comm not None, list makers not None, dict told not None):
        """Serve all communicators of one's kind until a parameter is set.

        Parameters:
            comm: the communicator; two are of one kind when they have as many ranks on each side, both a topology or
                neither, and when the same is known of where they are (`Placement`).
            makers: what makes each module for a communicator, by their numbers.
            told: what became of each component.
        """
        global generation
        if generation != registry.generation:
            plans.clear()
            generation = registry.generation
        self.makers = makers
        self.record = told
        self.spare = []
        plans[kind_of(comm)] = self

    cdef list column(self, int form, list modules):
        cdef int function
        return [modules[self.serving[form][function]] for function in range(FUNCTION_COUNT)]

    def table(self, list modules not None):
        """The table of a communicator whose modules these are, in the order of the numbers."""
        cdef CollTable table = CollTable.__new__(CollTable)
        cdef int number, function, behind
        for number, function, behind in self.before:
            (<CollModule> modules[number]).previous[function] = modules[behind]
        table.blocking, table.nonblocking, table.persistent = [self.column(form, modules) for form in range(3)]
        table.distinct = modules
        table.verdicts = self.verdicts
        table.plan = None if self.makers is None else self
        return table


cdef class CollTable:
    """Which module serves each function of one communicator.

    Attributes:
        verdicts: (function, component, priority, chosen, reason) of each offer.
    """

    def modules(self):
        """The modules of the communicator."""
        return self.distinct

    def module(self, int function):
        """The module of the blocking form."""
        return self.blocking[function]


# By kind, as long as no parameter is set.
cdef dict plans = {}
cdef object generation = -1

# Tables that a plan keeps at most for the next communicators.
cdef enum:
    MOST_SPARE = 64


cdef object kind_of(Communicator comm):
    """What communicators that are served alike have in common."""
    cdef unsigned long long kind = (<unsigned long long> comm.size << 34) | (<unsigned long long> comm.remote_size << 4)
    return kind | comm.placement << 2 | comm.is_inter << 1 | ("topology" in comm.attributes)


cdef CollTable ready_table(Communicator comm):
    cdef CollPlan plan = None
    if generation == registry.generation and not comm.spans_jobs:
        plan = plans.get(kind_of(comm))
    if plan is None:
        return None
    record.frameworks["coll"] = plan.record
    if plan.spare:
        return plan.spare.pop()
    return plan.table([make(comm) for make in plan.makers])


def ready(Communicator comm not None):
    """`ready_table`, for callers in plain Python."""
    return ready_table(comm)


cdef int release(CollTable table) except -1:
    cdef CollPlan plan = table.plan
    cdef CollModule module
    for module in table.distinct:
        module.free()
    if plan is not None and len(plan.spare) < MOST_SPARE:
        plan.spare.append(table)
    return 0


def forget_plans():
    """Before another bring-up in the same process: nothing is decided."""
    plans.clear()
