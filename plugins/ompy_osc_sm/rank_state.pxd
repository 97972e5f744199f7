# The words that the ranks of a window share, and the locks among them.  No Python in here: what is begun is ended.
#
#     rank 0's heap     | header | state 0 | state 1 | ...        zero at first
#
#     state of rank r   | guard  exclusive  sharing  waiting  tickets |     the lock of r's memory
#                       | combining |                                       who accumulates into it
#                       | met |  | met |                                    how often r has come to a fence
#                       | changes  list  stretches |                        what r has attached: `attached.pxd`
#                       | turns       8 bytes a rank |                      what rank i has of r's lock, or waits for
#                       | posted      4 bytes a rank |  twice               how often rank i has posted to r
#                       | completion  a line a rank  |  twice               how often rank i has completed towards r, and what
#                                                                           it put before it knew of r's post (`Completion`)
#
# Each of these begins a cache line.  `met`, `posted` and `completed` have one writer, and only grow: a release when they
# are written and an acquire when they are read order the accesses before with those after, and no value is ever another one
# that looks like it (ABA).  There are two of each, for odd counts and for even ones:
#
#     rank 0   met[1] = 1 ... sees 1 | fetches met[0]  | met[0] = 2 ...        a store to a line that the other core has
#     rank 1   met[1] = 1 ... sees 1 | fetches met[0]  | met[0] = 2 ...        read last waits for it to come back; this
#                                                                              one came while the program did something else
# for nobody looks at the line of the next count before the one of this count has been seen.
#
# The lock is fair: who can't have it draws a ticket and has it in the order of tickets, readers that follow one another
# together.  Whoever gives it back hands it over:
#
#     turns    | 0 | HELD shared | 7 exclusive | 8 shared |      rank 1 gives back: | 0 | 0 | HELD exclusive | 8 shared |
#              exclusive 0  sharing 1  waiting 2                                    exclusive 3  sharing 0  waiting 1
#
# `turns` are the truth and the three counts follow from them; both are changed by the holder of `guard` only, who holds it for
# some ten instructions.  If he is killed in them, the next one finds that out, takes the guard from him and counts again.
# Taking the guard is an exchange (acquire), letting go of it a release: so the next holder of the lock, who took the guard
# later, sees what the last one wrote under it, and one that was handed the lock sees it by its turn, which is written with
# a release by somebody who held the guard.
from libc.stdint cimport int32_t, uint32_t, uint64_t

from ompy.core.atomic cimport acquire32, exchange_if32, release32
from ompy.core.reach cimport Reach

cdef enum:
    LINE = 64
    # Of a turn; the lower bits are LOCK_EXCLUSIVE or LOCK_SHARED, the higher ones the ticket.
    KIND = 3
    HELD = 4
    TICKET = 8

    # Ranks up to which a completion has room for data: more would need 128 bytes for each pair of ranks.
    MOST_WITH_DATA = 32
    DATA = 48                                    # bytes of it

cdef struct Header:
    uint32_t blocked                             # ranks that sleep until something here changes
    char padding[LINE - 4]
    uint32_t left                                # ranks that have gone, but for rank 0
    char more_padding[LINE - 4]

cdef struct Count:
    uint64_t value
    char padding[LINE - 8]

cdef struct RankState:
    uint32_t guard                               # rank + 1, or 0
    uint32_t exclusive                           # rank + 1 of the one holder, or 0
    uint32_t sharing                             # holders that share
    uint32_t waiting
    uint64_t tickets                             # drawn so far
    char padding[LINE - 24]
    uint32_t combining                           # rank + 1, or 0
    char more_padding[LINE - 4]
    Count met[2]
    uint64_t changes                             # of the two that follow; odd amid one
    uint64_t list                                # where it is in the owner's heap
    uint64_t stretches                           # in it
    char last_padding[LINE - 24]

# Of one epoch of Start, as its target finds it.  The data are puts, `| displacement in bytes | size | bytes ... |` each from a
# multiple of 8 bytes, that are the target's to carry out when it waits.
cdef struct Completion:
    uint32_t completed
    uint32_t waited                              # of the target's own epochs towards the origin, how many that has waited for
    uint32_t used                                # bytes of data
    uint32_t unused
    char data[DATA]                              # absent where ranks are more than MOST_WITH_DATA

cdef struct DataHeader:
    uint64_t displacement
    uint64_t size

# One rank's view of them.
cdef struct Room:
    Header *header
    char *states
    size_t stride                                # of states
    size_t posted                                # where they begin in one
    size_t row                                   # bytes of a number of 4 bytes for each rank
    size_t completion                            # bytes of one
    size_t capacity                              # bytes of data in it
    int rank, ranks
    Reach **reaches                              # the other processes; NULL for this one


cdef inline RankState *state_of(const Room *room, int rank) noexcept nogil:
    return <RankState *> (room.states + rank * room.stride)

cdef inline uint64_t *turns_of(const Room *room, int rank) noexcept nogil:
    return <uint64_t *> (room.states + rank * room.stride + sizeof(RankState))

# Where this rank, or rank `by`, says that it has come to its count `turn`.
cdef inline uint64_t *met_by(const Room *room, int by, uint64_t turn) noexcept nogil:
    return &state_of(room, by).met[turn & 1].value

cdef inline uint32_t *posted_to(const Room *room, int rank, int by, uint32_t turn) noexcept nogil:
    return <uint32_t *> (room.states + rank * room.stride + room.posted + (turn & 1) * room.row) + by

# Whether a count, which may have begun at 0 again, has come to the value.
cdef inline bint has_reached(uint32_t count, uint32_t value) noexcept nogil:
    return <int32_t> (count - value) >= 0

cdef inline Completion *completion_at(const Room *room, int rank, int by, uint32_t turn) noexcept nogil:
    cdef char *first = room.states + rank * room.stride + room.posted + 2 * room.row
    return <Completion *> (first + ((turn & 1) * room.ranks + by) * room.completion)


cdef size_t bytes_needed(int ranks) noexcept nogil
cdef void lay_out(Room *room, char *memory, int rank, int ranks, Reach **reaches) noexcept nogil

# Whether the lock of the target's memory is this rank's; else it waits in its turn.
cdef bint ask(const Room *room, int target, uint32_t kind) noexcept nogil
# Give it back, or wait no more.
cdef void give_up(const Room *room, int target) noexcept nogil
# For those that wait for their turn, and don't come to the guard: if its holder was killed, the lock goes on without him.
cdef bint mend(const Room *room, int target) noexcept nogil
# A rank other than this one that holds the lock and whose process has gone, or -1.
cdef int dead_holder(const Room *room, int target) noexcept nogil

# Whether accumulates into the target's memory are this rank's to make; else another one is at it.
cdef inline bint try_combining(const Room *room, int target) noexcept nogil:
    cdef uint32_t *word = &state_of(room, target).combining
    return acquire32(word) == 0 and exchange_if32(word, 0, room.rank + 1)

cdef inline void end_combining(const Room *room, int target) noexcept nogil:
    release32(&state_of(room, target).combining, 0)
