# Orders of other processes to this one, which carries them out by loads and stores while it is inside MPI: the way into
# memory outside of the shared heap that needs no system call.  A process has one mailbox, made with its first window on such
# memory, in its heap, where it stays; orders name addresses, and know nothing of windows.
#
#     | used  called | slot 0 | slot 1 | ... | room of 0 | room of 1 | ...        a slot is one origin's for good
#
#     origin                                              target, in any MPI call
#     writes the order;  -> POSTED
#     looks for some microseconds                         POSTED -> CLAIMED
#                                                         carries it out;  CLAIMED -> DONE
#     DONE: has it all, the answer too
#     still POSTED:  -> WITHDRAWN, and the kernel copies, as it does where there is no mailbox
#
# So a target that is busy elsewhere costs a moment now and then: who has waited in vain leaves the mailbox alone for a while,
# twice as long each time.  A target that sleeps in MPI is called, which has it look for a millisecond, and the kernel copies
# until it is awake.  Carrying out waits for nothing: an origin that looks does it for others, so that two that have orders for
# one another both get on.  An accumulate is ordered by the holder of the target's `combining` (`rank_state.pxd`), as all
# are made.
#
# A put or get of more than one half, or a longer accumulate, is an order for each, so that both sides copy at the same time:
#
#     origin    first half in | post | second half in | DONE, post |        | DONE
#     target                         | first half out |            | second half out
#
# Elements that do not lie together are named by runs of equal blocks:
#
#     | 0x1000: 8 bytes, 1000 times, every 16 | 0x9000: 24 bytes, once | the bytes of all blocks, one after the other |
#
# A short put or get is left when it is posted: the origin waits for it where it next has something for the target, or the
# access is to be complete.  What is put is in the slot by then.
#
# An order of a process that was killed is carried out like any other, but not after its memory may be another's: before a
# window's memory is the program's again, `refuse` empties the mailbox.
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from ompy.core.atomic cimport acquire32, release32
from ompy.core.doorbell cimport Bell
from ompy.core.operation cimport Operation
from ompy.core.pace cimport Pace
from ompy.core.reach cimport Reach
from ompy.core.typemap cimport Typemap

cdef enum:
    SLOTS = 16
    INLINE = 32                                  # bytes of data in the slot itself
    ROOM = 131072                                # bytes of each slot's room: of the data of an order
    HALF = ROOM // 2                             # ... of a put or get: meanwhile those of the next one go in or out
    SHORT_HALF = 32768                           # ... of one that has no more than two such
    LONGEST_FAR = 1 << 22                        # bytes that an order without its data may be about
    PAGE = 4096
    PIECE = 65536                                # bytes that are combined at a time, of what is copied for that

# States of a slot.
cdef enum:
    IDLE, POSTED, CLAIMED, DONE, WITHDRAWN

cdef enum Kind:
    PUT                                          # data: what is written
    GET                                          # data: what was there
    COMBINE                                      # data: the operand
    FETCH                                        # data: the operand, what was there
    SWAP                                         # data: what is compared, and then what was there; what is written
    SCATTER                                      # data: runs of blocks (`Run`), what is written to them
    GATHER                                       # data: the same runs, what was there
    PULL                                         # the rest are about memory of the origin's (`Far`): read from there
    PUSH                                         # write what there is here
    ABSORB                                       # read the operand

cdef struct Slot:
    uint32_t state
    uint32_t owner                               # process, 0 for nobody
    uint64_t address                             # in the target; or how many runs
    uint32_t size                                # bytes there; of runs and their blocks
    uint16_t kind
    uint16_t operation                           # `number_of`
    uint16_t basic
    uint16_t second                              # the data are in the second half of the room
    uint32_t done                                # bytes that have been pulled, pushed or absorbed
    char data[INLINE]

# Data of an order without any.
cdef struct Far:
    uint64_t here                                # in the origin
    int64_t posted                               # nanoseconds; what is too old may be of a process that has gone

cdef struct Mailbox:
    uint32_t used                                # slots that have had an owner
    uint32_t called                              # orders will come
    char padding[56]
    Slot slots[SLOTS]

# Nanoseconds; each is longer than the one before, until an order is carried out.
cdef struct Pause:
    int64_t length                               # 0: there is none
    int64_t end

# Ways of a long access to memory that is not seen here: the target's copies alone, the kernel's on both sides, or here alone,
# which an accumulate never is where the target helps.
cdef enum:
    MAILBOX, BOTH_SIDES, KERNEL
    COPY_WAYS = 3
# What goes such ways.
cdef enum:
    OUTWARD, INWARD, COMBINED                    # long puts, gets, accumulates
    TRANSFERS = 3

# Sizes for which the quickest way is found apart.
cdef enum:
    SIZES = 3

# Who copies how much of what both sides copy, in 64ths: whoever is done first has one more of them the next time.
#
#     target  |======       |      done first:  |=======      |
#     origin  |      =======|                   |       ======|
cdef enum:
    PARTS = 64
    FEWEST_PARTS = 4                             # that either side has

# What an origin knows of a target's.
cdef struct Outbox:
    Mailbox *mailbox                             # NULL: it has none
    Slot *slot                                   # this process's, NULL for none yet
    bint outstanding                             # a put or get is in it that nobody has waited for
    char *here                                   # where what it gets is to go
    Pause in_vain                                # when there may be the next order
    Pause between_calls                          # or the next call
    Bell *bell
    int writer                                   # of the bell's pipe
    Pace paces[TRANSFERS][SIZES]
    unsigned char shares[TRANSFERS][SIZES]       # the target's, of what both sides copy

# Numbers of operations (`number_of`).
cdef enum:
    REPLACING, LEAVING, FIRST_REDUCTION

cdef enum Outcome:
    REFUSED, CARRIED_OUT, LOST                   # LOST: the target died over it


# The address of this process's own, made at the first call; 0 where there is no room in the heap.
cdef uint64_t own_mailbox() noexcept
# From the first to the second this process looks into it when it polls; counted.
cdef int start_serving() except -1
cdef int stop_serving() except -1
# Carries out what there is; how many orders that was.  Between `start_serving` and `stop_serving`.
cdef int serve() noexcept nogil
# No order that is there now will be carried out.
cdef void refuse() noexcept nogil
# The target's, by what its `own_mailbox` returned.
cdef void open_outbox(Outbox *outbox, uint64_t mailbox, const Reach *reach, Bell *bell, int writer) noexcept

# A slot to write an order in, or NULL: the kernel is to do it.
cdef Slot *slot_for(Outbox *outbox) noexcept
# Where an order's data are, `nbytes` in all.
cdef inline char *data_of(Mailbox *mailbox, Slot *slot, size_t nbytes, bint second=False) noexcept nogil:
    if nbytes <= INLINE:
        return &slot.data[0]
    return <char *> (mailbox + 1) + (slot - &mailbox.slots[0]) * ROOM + second * HALF
cdef inline void post(Outbox *outbox, Kind kind, uint64_t address, size_t size, bint second=False) noexcept nogil:
    outbox.slot.kind = kind
    outbox.slot.address = address
    outbox.slot.size = <uint32_t> size
    outbox.slot.second = second
    release32(&outbox.slot.state, POSTED)
cdef inline int size_number(size_t nbytes) noexcept nogil:
    return 0 if nbytes <= 131072 else 1 if nbytes <= 524288 else 2
# Wait until it is carried out; `patience` nanoseconds at most until it is claimed.
cdef Outcome settle(Outbox *outbox, Reach *reach, int64_t patience) noexcept
# The target's share of what both sides are to copy, in whole pages; and what is learned when the origin is done with its own.
cdef inline size_t share_of(const Outbox *outbox, int transfer, size_t nbytes) noexcept nogil:
    cdef size_t parts = outbox.shares[transfer][size_number(nbytes)]
    return min(nbytes, (nbytes * parts // PARTS + PAGE - 1) & ~<size_t> (PAGE - 1))
cdef inline void balance(Outbox *outbox, int transfer, size_t nbytes) noexcept nogil:
    cdef unsigned char *parts = &outbox.shares[transfer][size_number(nbytes)]
    if acquire32(&outbox.slot.state) == DONE:
        parts[0] = min(parts[0] + 1, PARTS - FEWEST_PARTS)
    else:
        parts[0] = max(parts[0] - 1, FEWEST_PARTS)
# How targets know the operation when it is made on `nbytes` of the type at the address; -1: by no order.
cdef int number_of(Operation operation, Typemap typemap, uint64_t address) noexcept
