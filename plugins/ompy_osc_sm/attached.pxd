# What the ranks of a dynamic window have attached, each where the others see it (MPI-4.1, 12.2.4).
#
#     rank 0's heap    state of rank 1   | changes | list | stretches |
#                                                     |
#     rank 1's heap                                   v
#                      | 0x1000 64 | 0x2000 4096 | 0x9000 8 | - |        by address; none overlap
#
# The owner changes it, the others read it at any time: `changes` is odd meanwhile, and whoever has read looks whether it is
# still what it was.  A list that has become too short is copied and given back while others may be reading it, which does
# no harm: the heap stays mapped, and `changes` tells them that what they have read is nothing.  A reader keeps the stretch
# that he found last; while `changes` is the same, that one is looked at alone.  Elements in several stretches are looked up
# piece by piece.
from libc.stdint cimport uint64_t

from ompy.mca.osc cimport Access
from ompy_osc_sm.sharing cimport Sharing

cdef struct Stretch:
    uint64_t address
    uint64_t size

# What a reader knows of a target's list.
cdef struct Found:
    uint64_t changes
    Stretch stretch


cdef class Attached(Sharing):
    cdef bint dynamic
    cdef object attachments                      # of this rank (`Attachments`)
    cdef Stretch *stretches                      # the same, as the others see them
    cdef size_t count, capacity
    cdef Found *found                            # target -> what was found last

    # Whether the elements are seen here, and where; ERR_RMA_RANGE unless their owner has attached them.
    cdef bint sees_attached(self, Access access, char **place) except -1
    # Finds the stretch that begins last at or below the address, or one of no bytes.
    cdef int look_up(self, int target, uint64_t address) except -1
    cdef int grow(self) except -1
    cdef void begin_change(self) noexcept
    cdef void end_change(self) noexcept
