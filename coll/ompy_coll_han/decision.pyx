# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The decision between two levels and none, for one communicator and for one call."""
from ompy.core.communicator cimport Communicator
from ompy.mca.coll cimport BARRIER, CollectiveCall
from ompy.mca.scheduled_coll cimport block_bytes

from ompy.mca.coll import FUNCTIONS
from ompy.mca.coll_rules import Rule
from ompy_coll_han.algorithms import FLAT


cdef class Candidate:
    """An algorithm as a rule has it.

    Parameters:
        chosen: the algorithm's entry in `algorithms.py`.
        rule: from how many bytes on, segment size.
    """

    def __init__(self, chosen, rule):
        self.algorithm = chosen
        self.from_bytes = rule.from_bytes
        self.segment = rule.segment
        self.flat = chosen.name == FLAT

    @property
    def words(self):
        words = [f"from {self.from_bytes} bytes"] if self.from_bytes else []
        if self.algorithm.segmented:
            words.append(f"in pieces of {self.segment} bytes" if self.segment else "in one piece")
        return ", ".join(words)


cdef class Decision:
    """What serves one function on one communicator.

    Parameters:
        function: its number in `ompy.mca.coll`.
        catalogue: the component's.
        rules: by ascending bytes, the first from 0.
        source: where the rules come from, for people.
    """

    def __init__(self, int function, catalogue, rules, str source not None):
        name = FUNCTIONS[function]
        self.function = function
        self.source = source
        self.candidates = [Candidate(catalogue.algorithm(name, rule.algorithm), rule) for rule in rules]
        self.left = Candidate(catalogue.algorithm(name, FLAT), Rule(0, FLAT))

    cdef Candidate of_size(self, Py_ssize_t nbytes):
        cdef Candidate chosen = <Candidate> self.candidates[0], candidate
        for candidate in self.candidates:
            if candidate.from_bytes > nbytes:
                break
            chosen = candidate
        return chosen

    cdef Candidate choose(self, CollectiveCall call, Communicator comm):
        cdef Py_ssize_t nbytes = block_bytes(self.function, call, comm)
        cdef Candidate chosen
        # Where there are no data nobody need wait for anybody, but in a barrier.
        if nbytes == 0 and self.function != BARRIER:
            return None
        chosen = self.of_size(nbytes)
        return None if chosen.flat else chosen

    def explain(self, Py_ssize_t nbytes, bint served=True):
        """[(algorithm, whether it would serve a block of so many bytes, when it is taken)], by ascending bytes."""
        cdef Candidate chosen = self.of_size(nbytes), candidate
        told = []
        if not served:
            told.append((self.left.algorithm, True, "the operation does not commute, and hosts have no runs of ranks"))
        for candidate in self.candidates:
            words = ", ".join(filter(None, (candidate.words, self.source)))
            told.append((candidate.algorithm, served and candidate is chosen, words))
        return told
