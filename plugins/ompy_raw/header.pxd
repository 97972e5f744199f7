# The first word of every message on the general dynamic network (thesis, 2.1.2; layout as in the Raw specification).
#
#     31  29 28      24 23              10 9     5 4     0
#     +-----+----------+------------------+-------+-------+
#     | fin |  length  |        0         |   y   |   x   |
#     +-----+----------+------------------+-------+-------+
#       |       |                             absolute, of the destination tile: x to the east, y to the south
#       |       words that follow, 1 to 31
#       route once x and y are reached: into the processor, or off the chip through a pin on that side
#
# The destination's router consumes it: the program there never sees it.
from libc.stdint cimport uint32_t

cdef enum:
    MOST_WORDS = 31                              # of payload in one message
    MOST_TILES_ASIDE = 32                        # 5 bits

# Sides of a tile: final routes, and the ports of a router.
cdef enum:
    PROCESSOR = 0
    NORTH = 1
    EAST = 2
    SOUTH = 3
    WEST = 4
    SIDES = 5


cdef inline uint32_t make_header(int length, int x, int y, int final=PROCESSOR) noexcept nogil:
    return <uint32_t> final << 29 | <uint32_t> length << 24 | <uint32_t> y << 5 | <uint32_t> x

cdef inline int length_of(uint32_t header) noexcept nogil:
    return header >> 24 & 31

cdef inline int x_of(uint32_t header) noexcept nogil:
    return header & 31

cdef inline int y_of(uint32_t header) noexcept nogil:
    return header >> 5 & 31

cdef inline int final_of(uint32_t header) noexcept nogil:
    return header >> 29
