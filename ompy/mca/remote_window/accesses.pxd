# Put, get and accumulates.
#
# What lies in one piece on both sides is begun and left to a flush; the rest goes packed, piece by piece, and so does what lies
# in several stretches of what a rank has attached.  An accumulate is one rank's at a time: it takes its turn at the target
# (`combining`), brings the elements here, changes them, and takes them back.  Where accesses keep their order it reads before
# it knows that the turn is its own, and gives the turn back before it knows that all is written.
from libc.stdint cimport int64_t, uint64_t

from ompy.core.convertor cimport Convertor
from ompy.core.request cimport Request
from ompy.core.typemap cimport Typemap
from ompy.mca.osc cimport Access
from ompy.mca.remote_window.attached cimport Attached
from ompy.mca.remote_window.ways cimport Key, Way


cdef class Accesses(Attached):
    cdef int numbers_due                         # turns for which this rank draws a number at once
    # The target's elements, one after the other, from or into packed bytes here.
    cdef int move_packed(self, Access access, Key key, bint inward, char *packed, object owner) except -1
    # The same by the keys of the stretches that they lie in.
    cdef int move_parts(self, Access access, Key key, bint inward, char *packed, object owner) except -1
    # The same by messages, each of which has room for many runs of blocks.
    cdef int move_runs(self, Way way, Key key, bint inward, Convertor convertor, char *packed, object owner) except -1
    cdef int bring(self, Access access, size_t address, Py_ssize_t count, Typemap typemap) except -1
    # Where the target's memory is, in its process.
    cdef uint64_t place_of(self, Access access)
    cdef int update(self, Access access, bint fetch, const char *packed, const char *compare) except -1
    # Whether it may be begun together with changes of the target's state, by that key.
    cdef bint keeps_order(self, Access access, Key key, Py_ssize_t nbytes)
    # Until nobody else accumulates into the target's memory; `give_turn` wants the answer back.
    cdef uint64_t take_turn(self, int target) except? 0
    # The same, and the target's elements.
    cdef uint64_t take_turn_and_read(self, Access access, Key key, bytearray elements) except? 0
    cdef int read(self, Access access, Key key, bytearray elements) except -1
    # Once what was begun before has taken effect.
    cdef int give_turn(self, int target, uint64_t mine) except -1
    cdef int require_living_combiners(self, int target, const int64_t *words) except -1
    cdef Request ended(self, Access access)
