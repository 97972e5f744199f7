# Which algorithm serves a call of one function on one communicator: by its bytes, and by its operation.
#
# All that is looked at is the same on every rank: the rules, the number of ranks, the bytes of a block, and whether the
# operation commutes.  What depends on the communicator alone is decided when a function is first used.
from ompy.core.communicator cimport Communicator
from ompy.mca.coll cimport CollectiveCall
from ompy_coll_tuned.algorithm cimport Build, Builder, Tuning


cdef class Candidate:
    """An algorithm, and from how many bytes on it serves."""
    cdef Build build
    cdef Builder builder
    cdef Tuning tuning
    cdef readonly object algorithm               # its entry in `algorithms.py`
    cdef readonly Py_ssize_t from_bytes
    cdef readonly bint ordered
    cdef readonly Candidate ordered_one          # for operations that don't commute, where this one can't serve those


cdef class Decision:
    cdef readonly int function
    cdef readonly str source                     # of the rules, for people
    cdef readonly list candidates                # by ascending bytes, the first from 0

    cdef Candidate choose(self, CollectiveCall call, Communicator comm)
    cdef Candidate of_size(self, Py_ssize_t nbytes, bint commutative)
