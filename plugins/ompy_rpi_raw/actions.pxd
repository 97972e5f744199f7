# What the software of rMPI does, in instructions, loads and stores.  Every action of the three versions is charged from this
# one table, in cycles of the tile's (`ompy_raw/costs.py`); nothing here depends on the program that runs.
#
# The thesis prints no counts.  Those of loops and look-ups are read off its figures (3-9, 4-10, 4-12, 4-14); those of a
# call (argument checks, run-time debugging, datatype and group look-ups of LAM/MPI's layer: figure 4-4) are set so that
# latency begins to grow at about 100 words, as in figure 5-3.
from libc.stdint cimport int64_t

from ompy_raw.tile cimport Tile

cdef struct Action:
    int instructions                             # neither load nor store
    int loads
    int stores

# A call of the MPI layer, down to the component and back.
cdef inline Action SEND_CALL() noexcept nogil:
    return Action(260, 100, 60)
cdef inline Action RECEIVE_CALL() noexcept nogil:
    return Action(320, 130, 80)
# A look at the state of a request, or of the network's status register.
cdef inline Action LOOK() noexcept nogil:
    return Action(8, 3, 0)

# Fields into a packet's header, next packet's bounds.
cdef inline Action PACKET_OUT() noexcept nogil:
    return Action(8, 2, 0)
# A header or section that is complete: which state comes next, bounds, bookkeeping.
cdef inline Action SECTION_IN() noexcept nogil:
    return Action(9, 4, 3)
# Envelopes compared (figure 4-14), and the next list entry.
cdef inline Action COMPARE() noexcept nogil:
    return Action(8, 6, 0)
# The thesis's hash function (figure 3-9), and the bucket.
cdef inline Action HASH() noexcept nogil:
    return Action(14, 3, 0)
# An entry made, filled in and linked, or unlinked.
cdef inline Action ENTRY() noexcept nogil:
    return Action(12, 4, 10)
# malloc or free; a packet buffer from the pool, or back.
cdef inline Action ALLOCATE() noexcept nogil:
    return Action(90, 30, 20)
cdef inline Action POOL() noexcept nogil:
    return Action(4, 2, 2)
# A status filled in, an entry reset.
cdef inline Action FINISH() noexcept nogil:
    return Action(12, 4, 8)
# Four words from memory to memory, in memcpy's unrolled loop.
cdef inline Action COPY_FOUR() noexcept nogil:
    return Action(2, 4, 4)

# The data cache (thesis, 5.2: 1 MB; lines of 8 words): a message that it can't hold misses once a line.
cdef enum:
    CACHE_BYTES = 1048576
    LINE_WORDS = 8

# The loops over words, as plain C compiles to them; nothing is unrolled.
cdef enum:
    # Load to $CGNO, pointer, branch.
    WRITE_WORD = 3
    # Status register, mask and branch: is a word there?  $CGNI stored, pointer; `words_recvd`; end of the section: compare
    # and branch (figure 4-12, table 4.7).
    READ_WORD = 8
    # The datatype engine's share of a word of non-contiguous data.
    PACK_WORD = 4


cdef inline void perform(Tile tile, Action action, int64_t times=1) noexcept:
    tile.charge(times * (action.instructions * tile.costs.issue + action.loads * tile.costs.load
                         + action.stores * tile.costs.store))
