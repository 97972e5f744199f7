# Who may access what, and when: the epochs of one window at one rank, which every component keeps alike (MPI-4.1, 12.5).
#
#     fenced       from a Fence to one that says NOSUCCEED, a Start, ...        towards every rank
#     started      from Start to Complete                                       towards those ranks
#     locked       from Lock to Unlock, Lock_all to Unlock_all                  towards that rank, all ranks
#
# The `may_` methods raise MPIError for a call that does not belong here, before anything is done.
from ompy.core.window cimport LOCK_EXCLUSIVE, LOCK_SHARED, Window
from ompy.mca.osc cimport Access, OscModule


cdef class Epochs(OscModule):
    cdef readonly int rank, ranks
    cdef public bint fenced                      # between two fences
    cdef list started                            # ranks of `start`, or None
    cdef char *begun                             # target -> is it one of them?
    cdef char *locked                            # target -> LOCK_EXCLUSIVE, LOCK_SHARED, 0
    cdef int locks                               # targets that are locked
    cdef public bint locked_all
    cdef bint no_locks                           # the program said that it would not

    cdef inline bint is_open(self, int target) noexcept:
        return self.fenced or self.locked_all or self.locked[target] or self.begun[target]

    # ERR_RMA_SYNC unless an epoch is open towards the target, ERR_ARG unless origin, of `nbytes`, and target have as many
    # bytes, ERR_DISP or ERR_RMA_RANGE unless they are the target's.
    cpdef int may_access(self, Access access, Py_ssize_t nbytes) except -1
    # Target -1: all.
    cpdef int may_flush(self, int target) except -1
    cpdef int may_fence(self) except -1
    cpdef int may_start(self) except -1
    cpdef int may_lock(self, int target, int kind) except -1
    cpdef int may_unlock(self, int target) except -1
    cpdef int may_lock_all(self) except -1
    cpdef int may_unlock_all(self) except -1
    cpdef int may_free(self) except -1
    cdef int nothing_is_locked(self, str call) except -1
    cdef int lock_is_allowed(self, str call) except -1
    # Whether memory may be added or taken away by the call; ERR_RMA_FLAVOR unless the window is dynamic.
    cpdef int may_attach(self, str call) except -1

    # What those calls do to the epochs.
    cpdef int begin_towards(self, list ranks) except -1
    cpdef list end_started(self)                 # the ranks of `start`; ERR_RMA_SYNC where there was none
    cpdef void note_lock(self, int target, int kind) noexcept
    cpdef void note_unlock(self, int target) noexcept
