# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The choice among the algorithms of `algorithms.py`, for one communicator and for one call."""
from importlib import import_module

from ompy.core.communicator cimport Communicator
from ompy.mca.coll cimport (
    ALLGATHER, ALLGATHERV, ALLREDUCE, ALLTOALL, BCAST, EXSCAN, GATHER, REDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK,
    SCAN, SCATTER, CollectiveCall,
)
from ompy_coll_basic.builder cimport Builder

from ompy.mca.coll import FUNCTIONS
from ompy_coll_basic.algorithms import ANY, INTER, INTRA, SMALL


cdef class Candidate:
    def __cinit__(self, algorithm, Builder builder not None, bint forced=False):
        self.algorithm = algorithm
        self.builder = builder
        self.build = builder.build
        self.ordered = algorithm.ordered
        self.from_bytes = 0 if forced else algorithm.from_bytes
        self.to_bytes = -1 if forced else algorithm.to_bytes
        self.forced = forced

    def when(self, int crossover):
        """In words, when it is taken."""
        if self.forced:
            return "asked for by name" if self.ordered else "asked for by name, for operations that commute"
        return self.algorithm.when(crossover)

    cdef bint suits(self, Py_ssize_t nbytes, bint commutative):
        return (nbytes >= self.from_bytes and (self.to_bytes < 0 or nbytes <= self.to_bytes)
                and (self.ordered or commutative))


cdef class Choice:
    """What may serve one function on one communicator.

    Parameters:
        function: its number in `ompy.mca.coll`.
        comm: the communicator.
        crossover: up to this many processes a group is small.
        forced: name of the algorithm to use wherever it can serve; "auto" for none.
    """

    def __init__(self, int function, Communicator comm not None, int crossover, str forced):
        name = FUNCTIONS[function]
        builders = import_module(f"ompy_coll_basic.{family(name)}").BUILDERS
        key = name + " inter" if comm.is_inter else name
        self.function = function
        self.crossover = crossover
        self.candidates = []
        for algorithm in (INTER if comm.is_inter else INTRA)[name]:
            builder = builders[key, algorithm.name]
            if algorithm.name == forced:
                self.candidates.insert(0, Candidate(algorithm, builder, True))
            elif not algorithm.by_name and (algorithm.group == ANY or (algorithm.group == SMALL) == (comm.size <= crossover)):
                self.candidates.append(Candidate(algorithm, builder))
        first = <Candidate> self.candidates[0]
        if first.ordered and first.from_bytes == 0 and first.to_bytes < 0:
            self.only = first

    cdef Candidate choose(self, CollectiveCall call, Communicator comm):
        cdef Candidate candidate
        cdef Py_ssize_t nbytes
        cdef bint commutative
        if self.only is not None:
            return self.only
        nbytes = measure(self.function, call, comm)
        commutative = call.operation is None or call.operation.commutative
        for candidate in self.candidates:
            if candidate.suits(nbytes, commutative):
                return candidate
        raise RuntimeError(f"no algorithm of {FUNCTIONS[self.function]} suits {nbytes} bytes on {comm.size} processes")

    def explain(self, Py_ssize_t nbytes, bint commutative=True):
        """[(algorithm, whether it would serve a block of so many bytes, when it is taken)], in the order asked."""
        told = []
        chosen = False
        for candidate in self.candidates:
            suits = not chosen and (<Candidate> candidate).suits(nbytes, commutative)
            chosen = chosen or suits
            told.append(((<Candidate> candidate).algorithm, suits, (<Candidate> candidate).when(self.crossover)))
        return told


def family(name):
    """The file that holds a function's algorithms."""
    if name.startswith("neighbor_"):
        return "neighbor"
    if name.startswith("reduce_scatter"):
        return "reduce_scatter"
    if name == "exscan":
        return "scan"
    return name.rstrip("vw")


cdef Py_ssize_t measure(int function, CollectiveCall call, Communicator comm):
    cdef Py_ssize_t total = 0
    cdef int rank
    if function == BCAST:
        return call.send_count * call.send_type.size if call.send_type is not None else 0
    if function == GATHER:
        if comm.rank == call.root:
            return call.recv_count * call.recv_type.size
        return call.send_count * call.send_type.size
    if function == SCATTER:
        if comm.rank == call.root:
            return call.send_count * call.send_type.size
        return call.recv_count * call.recv_type.size
    if function == REDUCE:
        if call.send_in_place:
            return call.recv_count * call.recv_type.size
        return call.send_count * call.send_type.size
    if function in (ALLGATHER, ALLTOALL, ALLREDUCE, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN):
        return call.recv_count * call.recv_type.size
    if function == ALLGATHERV or function == REDUCE_SCATTER:
        for rank in range(comm.size):
            total += call.recv_counts[rank]
        return total * call.recv_type.size // comm.size
    return 0
