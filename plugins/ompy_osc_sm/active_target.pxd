# Epochs of Post and Wait, Start and Complete: general active target synchronization (MPI-4.1, 12.5.2).
#
# An origin need not wait for a target's Post while all that it has is short puts.  They go into the completion of its epoch
# (`rank_state.pxd`), and the target carries them out when it waits:
#
#     origin   Start | Put   | Complete                        target   Post | ...      | Wait
#              -     | copy -> | 3 16 8 data... |                       -    |          | sees 3, copies into its window
#
# Anything else, or more than there is room for, waits for the Post; what has been put so far is then made here, first.
#
# A completion has two places, by turns, so an origin is two epochs ahead of its target at most.  That the place of this turn
# is free it knows from the target's own completions, which tell how far the target has waited (`waited`), or from its last
# Post, which comes after the Wait before; who finds neither waits for that Post.
from libc.stdint cimport uint32_t

from ompy.mca.osc cimport Access
from ompy_osc_sm.rank_state cimport Completion
from ompy_osc_sm.remote cimport Remote


cdef class ActiveTarget(Remote):
    cdef list exposed                            # ranks of `post`, or None
    # Counts by rank, in one block of memory.
    cdef uint32_t *posts                         # posts to an origin
    cdef uint32_t *starts                        # posts of a target's that starts have used up
    cdef uint32_t *completes                     # completes towards a target
    cdef uint32_t *waits                         # completes of an origin's that waits have used up
    cdef uint32_t *waited                        # completes towards a target that it is known to have waited for
    cdef uint32_t *used                          # bytes of data in the completion that an epoch fills
    cdef char *ahead                             # target -> is its post of this epoch still to be seen?

    # Before anything is done to a target's memory from here.
    cdef inline int await_exposure(self, int target) except -1:
        return self.see_post(target) if self.ahead[target] else 0

    cdef inline bint may_be_ahead(self, int target) noexcept:
        return self.room.capacity and target != self.rank and not self.dynamic

    # Whether the put is in the completion.
    cdef bint put_ahead(self, Access access, size_t nbytes) except -1
    cdef int see_post(self, int target) except -1
    cdef int carry_out(self, int target, const Completion *completion, size_t used) except -1
    cdef int await_count(self, uint32_t *word, uint32_t value, int peer, int operation) except -1
