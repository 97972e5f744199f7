# Flow control, since Puma has none: who may fill how much of a receiver's heap.
#
# Each sender has a share of every receiver's heap, the *allowance*, and charges each message with what it takes there if
# nobody waits for it.  The receiver counts what it has given back, matched at once or taken out later, and says so when half
# the allowance has come together:
#
#     sender    spent   |=====================>            may spend up to  allowance + returned
#     receiver  returned    |============>                 told to the sender: returned, in a CREDIT message
#
# So the heap of a receiver that computes is never full, no message is dropped for want of room, and its memory is what
# `mtl_portals_heap` says.  A message for which there is no credit stays with its sender.
#
# Two lanes keep the library's own messages (negative tags) from waiting behind the program's: a barrier gets through to a
# process that has not yet received what was sent to it before.
from libc.stdint cimport uint64_t

cdef enum:
    LANE_PROGRAM = 0
    LANE_LIBRARY = 1
    LANES = 2

# Messages of ours that may stand in the kernel's queue; what is beyond waits here.
cdef enum:
    QUEUED_LIMIT = 1024

cdef struct Lane:
    uint64_t spent, granted                      # as sender
    uint64_t returned, told                      # as receiver
    uint64_t stalled                             # messages that wait in the lane's queue
    bint pushing                                 # somebody is at work on that queue

cdef struct Peer:
    Lane lanes[LANES]
    bint met                                     # the lanes' first allowance was granted
    bint failed


cdef inline int lane_of(int tag) noexcept nogil:
    return LANE_LIBRARY if tag < 0 else LANE_PROGRAM
