# What the ranks of a dynamic window have attached (MPI-4.1, 12.2.4).
#
#     origin   `detached` of the target's state: as it was?  else its keys are forgotten
#              a key that holds the address?                else the target is asked, by a message of the layer, which its
#                                                           progress answers with the row of what lies there
#              the access, by that key; by those of all stretches that its elements lie in, once it has them
#
# So whoever has the key needs nothing of the target but what its BTL needs; and what has been taken away, and perhaps is
# attached again, is never reached by an old key.
from libc.stdint cimport uint64_t

from ompy.mca.osc cimport Access
from ompy.mca.remote_window.ways cimport Key, Ways


cdef class Attached(Ways):
    cdef bint dynamic
    cdef object attachments                      # of this rank (`Attachments`)
    cdef dict entries                            # address -> (row, what is to be released)
    cdef uint64_t register                       # that others ask
    cdef list known                              # target -> Known

    # Of the memory that is accessed; None where it is this rank's.  ERR_RMA_RANGE where it isn't attached.
    cdef Key key_for(self, Access access)
    cdef int forget_detached(self, int target) except -1
    # Of what lies there; None where nothing does.
    cdef Key key_at(self, int target, uint64_t address)
    cdef Key asked(self, int target, uint64_t address)
