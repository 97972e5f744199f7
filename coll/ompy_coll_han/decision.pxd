# Which calls of a function go by the two levels: by the bytes of a block, the same on every rank.
from ompy.core.communicator cimport Communicator
from ompy.mca.coll cimport CollectiveCall


cdef class Candidate:
    cdef readonly object algorithm               # its entry in `algorithms.py`
    cdef readonly Py_ssize_t from_bytes
    cdef readonly Py_ssize_t segment             # bytes of a piece of a long message; 0: in one piece
    cdef bint flat


cdef class Decision:
    cdef readonly int function
    cdef readonly str source                     # of the rules, for people
    cdef readonly list candidates                # by ascending bytes, the first from 0
    cdef readonly Candidate left                 # stands for what the levels can't do

    cdef Candidate of_size(self, Py_ssize_t nbytes)
    # None: the call is the next component's.
    cdef Candidate choose(self, CollectiveCall call, Communicator comm)
