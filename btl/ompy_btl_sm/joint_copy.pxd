# One long copy that both processes work at: the receiver of a message offers it in the ring towards the sender, where the
# sender, if it is awake and looking, finds it.
#
#     message    | 0 | 1 | 2 | 3 | 4 | 5 | ...        pieces; whoever is free takes the next number (`next`)
#     receiver     x   x       x                      reads from the sender's memory
#     sender               x       x                  writes to the receiver's
#
# Nobody waits for a sender that does not look: the receiver takes all pieces then.  It withdraws the offer when no piece is
# left, and waits for the one that the sender has in hand, as nothing may be written once the message counts as received.
#
# A receiver that dies withdraws nothing.  So offers are numbered, and one in which a sender found no piece left is none to it
# any more: it goes to sleep, which is when it looks whether its peers are alive.
from libc.stdint cimport uint32_t, uint64_t

cdef struct JointCopy:
    # written by the receiver
    uint64_t source                              # address in the sender
    uint64_t target                              # address in the receiver
    uint64_t size
    uint64_t piece                               # bytes of one
    uint32_t open                                # the offer's number; 0: none
    uint32_t offers                              # made so far
    char pad0[24]
    # by both
    uint64_t next                                # number of the next piece
    char pad1[56]
    # by the sender
    uint32_t helping
    uint32_t failed                              # a piece could not be written
    char pad2[56]


# Moves `size` bytes between `here` and the peer's `there`, to here when `inward`; 0, or an errno.
ctypedef int (*MoveFunction)(void *peer, size_t here, uint64_t there, size_t size, bint inward) noexcept nogil
# Has the peer gone?
ctypedef bint (*GoneFunction)(void *peer) noexcept nogil

# The receiver's part, from offer to withdrawal; 0, or an errno: then what is in the target is undefined.
cdef int receive_jointly(JointCopy *joint, uint64_t source, size_t target, size_t size, void *peer, MoveFunction move,
                         GoneFunction gone) noexcept nogil
# The sender's: whether there is an offer, which stays the same one until `end_helping`.
cdef bint begin_helping(JointCopy *joint) noexcept nogil
# Between the two; returns the number of pieces that it took.
cdef int help_along(JointCopy *joint, void *peer, MoveFunction move) noexcept nogil
cdef void end_helping(JointCopy *joint) noexcept nogil
