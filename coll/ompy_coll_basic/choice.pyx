# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The choice among the algorithms of `algorithms.py`, for one communicator and for one call."""

from ompy.core.communicator cimport Communicator
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.scheduled_coll cimport block_bytes
from ompy_coll_basic.builder cimport Builder

from ompy.mca.coll import FUNCTIONS
from ompy.mca.loading import import_module
from ompy_coll_basic.algorithms import ANY, INTER, INTRA, SMALL


cdef class Candidate:
    def __cinit__(self, algorithm, Builder builder not None, bint forced=False):
        self.algorithm = algorithm
        self.builder = builder
        self.build = builder.build
        self.to_bytes = -1 if forced else algorithm.to_bytes
        self.forced = forced

    def when(self, int crossover):
        """In words, when it is taken."""
        return "asked for by name" if self.forced else self.algorithm.when(crossover)

    cdef bint suits(self, Py_ssize_t nbytes):
        return self.to_bytes < 0 or nbytes <= self.to_bytes


cdef class Choice:
    """What may serve one function on one communicator.

    Parameters:
        function: its number in `ompy.mca.coll`.
        comm: the communicator.
        crossover: up to this many processes a group is small.
        forced: name of the algorithm to use; "auto" for none.
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
            elif algorithm.group == ANY or (algorithm.group == SMALL) == (comm.size <= crossover):
                self.candidates.append(Candidate(algorithm, builder))

    cdef Candidate choose(self, CollectiveCall call, Communicator comm):
        cdef Candidate candidate = <Candidate> self.candidates[0]
        cdef Py_ssize_t nbytes
        if candidate.to_bytes < 0:
            return candidate
        nbytes = block_bytes(self.function, call, comm)
        for candidate in self.candidates:
            if candidate.suits(nbytes):
                return candidate
        raise RuntimeError(f"no algorithm of {FUNCTIONS[self.function]} suits {nbytes} bytes on {comm.size} processes")

    def explain(self, Py_ssize_t nbytes):
        """[(algorithm, whether it would serve a block of so many bytes, when it is taken)], in the order asked."""
        told = []
        chosen = False
        for candidate in self.candidates:
            suits = not chosen and (<Candidate> candidate).suits(nbytes)
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
