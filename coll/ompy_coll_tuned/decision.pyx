# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The decision among the algorithms of `algorithms.py`, for one communicator and for one call."""

from ompy.core.communicator cimport Communicator
from ompy.mca.coll cimport BCAST, CollectiveCall
from ompy.mca.scheduled_coll cimport block_bytes
from ompy_coll_tuned.algorithm cimport Builder

from ompy.mca.coll import FUNCTIONS
from ompy.mca.loading import import_module
from ompy_coll_tuned.algorithms import CATALOGUE


cdef class Candidate:
    """An algorithm as a rule has it.

    Parameters:
        chosen: the algorithm's entry in `algorithms.py`.
        builder: its function.
        rule: from how many bytes on, segment size, fan-out.
    """

    def __cinit__(self, chosen, Builder builder not None, rule):
        self.algorithm = chosen
        self.builder = builder
        self.build = builder.build
        self.tuning.segment = rule.segment
        self.tuning.fanout = rule.fanout
        self.ordered = chosen.ordered
        self.from_bytes = rule.from_bytes

    @property
    def words(self):
        """Segment size and fan-out, where it takes them."""
        words = [f"from {self.from_bytes} bytes"] if self.from_bytes else []
        if self.algorithm.segmented:
            words.append(f"in pieces of {self.tuning.segment} bytes" if self.tuning.segment else "in one piece")
        if self.algorithm.fanout:
            words.append(f"{self.algorithm.fanout} {self.tuning.fanout}")
        return ", ".join(words)


cdef class Decision:
    """What serves one function on one communicator.

    Parameters:
        function: its number in `ompy.mca.coll`.
        comm: the communicator.
        rules: by ascending bytes, the first from 0.
        source: where the rules come from, for people.
    """

    def __init__(self, int function, Communicator comm not None, rules, str source not None):
        name = FUNCTIONS[function]
        builders = import_module(f"ompy_coll_tuned.{family(name)}").BUILDERS
        self.function = function
        self.source = source
        self.candidates = []
        for rule in rules:
            chosen = CATALOGUE.algorithm(name, rule.algorithm)
            while not chosen.serves(comm.size):
                chosen = CATALOGUE.algorithm(name, chosen.otherwise)
            candidate = Candidate(chosen, builders[name, chosen.name], rule)
            if function == BCAST and comm.size <= 2:
                # Nobody would pass one piece on while the next comes.
                (<Candidate> candidate).tuning.segment = 0
            if not chosen.ordered:
                instead = CATALOGUE.algorithm(name, chosen.otherwise)
                (<Candidate> candidate).ordered_one = Candidate(instead, builders[name, instead.name], rule)
            self.candidates.append(candidate)

    cdef Candidate of_size(self, Py_ssize_t nbytes, bint commutative):
        cdef Candidate chosen = <Candidate> self.candidates[0], candidate
        for candidate in self.candidates:
            if candidate.from_bytes > nbytes:
                break
            chosen = candidate
        return chosen if chosen.ordered or commutative else chosen.ordered_one

    cdef Candidate choose(self, CollectiveCall call, Communicator comm):
        cdef Py_ssize_t nbytes = block_bytes(self.function, call, comm) if len(self.candidates) > 1 else 0
        return self.of_size(nbytes, call.operation is None or call.operation.commutative)

    def explain(self, Py_ssize_t nbytes, bint commutative=True):
        """[(algorithm, whether it would serve a block of so many bytes, when it is taken)], by ascending bytes."""
        chosen = self.of_size(nbytes, commutative)
        told = []
        for candidate in self.candidates:
            serving = (<Candidate> candidate) if commutative or candidate.ordered else candidate.ordered_one
            told.append((serving.algorithm, serving is chosen, ", ".join(filter(None, (candidate.words, self.source)))))
        return told


def family(name):
    """The file that holds a function's algorithms."""
    return "reduce_scatter" if name.startswith("reduce_scatter") else name.rstrip("vw")
