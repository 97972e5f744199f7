# The general dynamic network: one router a tile, one link each way between neighbours (thesis, 2.1.2).
#
#     $CGNO of tile 0                      tile 0's router         tile 1's router
#     program writes -> [4 words] -> crossbar -> link east -> [4 words] -> crossbar -> $CGNI: program reads
#                      input PROCESSOR                       input WEST    output PROCESSOR
#
# Each of a router's five inputs has a buffer of 4 words; outputs have none.  So 8 words lie between a program that writes
# and its neighbour that does not read, and 4 more with each hop; the header is not among them, because the last router
# has consumed it.
#
# A cycle, of which everything is decided by what the buffers held when it began:
#   * a header at the head of an input asks for the output that leads on, first along x, then along y; of several inputs
#     that ask for a free output, the next in turn (PROCESSOR, NORTH, EAST, SOUTH, WEST) gets it, and keeps it until the
#     message's last word is through: words of two messages never mix;
#   * an input that has an output sends a word, if the buffer at the other end has room; it arrives one cycle later;
#   * a header that has reached its tile is consumed; its words wait for the program to read them.
#
# An uncontended message of n words over h hops: its header is written in cycle t, its word i in t + i, and the program can
# read word i in cycle t + i + h + 1; so the last is read n + h + 2 cycles after the header's writing began.
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t

from ompy_raw.header cimport PROCESSOR
from ompy_raw.recording cimport Recording

cdef enum:
    BUFFER_WORDS = 4

cdef struct Buffer:
    uint32_t words[BUFFER_WORDS]
    uint8_t head, count
    int8_t output                                # that the message at its head has, -1: none
    uint8_t left                                 # words of that message still to go

cdef struct Router:
    Buffer inputs[5]                             # by side
    int8_t owner[5]                              # of each output: the input that has it, -1: free
    int8_t turn[5]                               # the input that is asked first, of each output
    uint8_t asking[5]                            # bits: inputs that ask for the output in this cycle
    uint8_t unattended                           # no program reads here: what arrives is thrown away
    int64_t crossed[5]                           # words that went out at each side, headers included

cdef class Network:
    cdef readonly int width, height, tiles
    cdef Router *routers
    cdef int32_t *active                         # inputs (5 * tile + side) that hold words, in no order
    cdef int32_t *place                          # of each input in `active`, -1: not there
    cdef int32_t *count_active                   # one number
    cdef int32_t *beyond                         # of each output: the input that its link leads to, -1: off the chip
    cdef int32_t *moves                          # of the cycle under way
    cdef int32_t *asked
    cdef Recording recording                     # None: nothing is recorded

    # Divides memory (NULL: only counts) and returns its bytes; whoever makes it (`fresh`) also clears it.
    cdef size_t lay_out(self, int width, int height, char *memory, bint fresh) noexcept
    # The side whose input holds the words that the tile's program can read now, -1: none.
    cdef inline int readable(self, int tile) noexcept nogil:
        cdef Router *router = &self.routers[tile]
        cdef int side = router.owner[PROCESSOR]
        return side if side >= 0 and router.inputs[side].count > 0 else -1
    cdef inline bint writable(self, int tile) noexcept nogil:
        return self.routers[tile].inputs[PROCESSOR].count < BUFFER_WORDS
    # One cycle of all routers; returns how much happened.  The programs' reads and writes of the same cycle were decided
    # before and are carried out after.
    cdef int cycle(self, int64_t now) noexcept nogil
    # The first word of an input goes on to where its message goes; returns it.
    cdef uint32_t forward(self, int64_t now, int input) noexcept nogil
    cdef int route(self, int tile, uint32_t header) noexcept nogil
    cdef uint32_t pop(self, int input) noexcept nogil
    cdef void push(self, int input, uint32_t word) noexcept nogil
