# Which algorithm serves a call: what doesn't change while a communicator lives is decided when a function is first used.
from ompy.core.communicator cimport Communicator
from ompy.mca.coll cimport CollectiveCall
from ompy_coll_basic.builder cimport Builder, Build


cdef class Candidate:
    """An algorithm that this communicator may use, and what a call must be like for it."""
    cdef Build build
    cdef Builder builder
    cdef readonly object algorithm               # its entry in `algorithms.py`
    cdef readonly Py_ssize_t to_bytes            # -1: no bound
    cdef readonly bint forced                    # named by a parameter

    cdef bint suits(self, Py_ssize_t nbytes)


cdef class Choice:
    """The candidates for one function on one communicator, in the order in which they are asked."""
    cdef readonly int function
    cdef readonly int crossover
    cdef readonly list candidates

    cdef Candidate choose(self, CollectiveCall call, Communicator comm)
