# Which algorithm serves a call: what doesn't change while a communicator lives is decided when a function is first used.
from ompy.core.communicator cimport Communicator
from ompy.mca.coll cimport CollectiveCall
from ompy_coll_basic.builder cimport Builder, Build


cdef class Candidate:
    """An algorithm that this communicator may use, and what a call must be like for it."""
    cdef Build build
    cdef Builder builder
    cdef readonly object algorithm               # its entry in `algorithms.py`
    cdef readonly Py_ssize_t from_bytes
    cdef readonly Py_ssize_t to_bytes            # -1: no bound
    cdef readonly bint ordered
    cdef readonly bint forced                    # named by a parameter

    cdef bint suits(self, Py_ssize_t nbytes, bint commutative)


cdef class Choice:
    """The candidates for one function on one communicator, in the order in which they are asked."""
    cdef readonly int function
    cdef readonly int crossover
    cdef readonly list candidates
    cdef Candidate only                          # when there is nothing to decide per call

    cdef Candidate choose(self, CollectiveCall call, Communicator comm)


# Bytes of one block of the call, the same number on every rank.
cdef Py_ssize_t measure(int function, CollectiveCall call, Communicator comm)
