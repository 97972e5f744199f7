# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The general dynamic network.  See `network.pxd`."""
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from ompy_raw.header cimport (
    EAST, NORTH, PROCESSOR, SIDES, SOUTH, WEST, final_of, length_of, x_of, y_of,
)


cdef inline size_t whole_lines(size_t size) noexcept nogil:
    return (size + 63) // 64 * 64


cdef class Network:
    def __dealloc__(self):
        free(self.moves)
        free(self.asked)
        free(self.beyond)

    cdef size_t lay_out(self, int width, int height, char *memory, bint fresh) noexcept:
        cdef int tiles = width * height
        cdef int inputs = SIDES * tiles
        cdef size_t position = 0
        cdef int tile, side, index
        self.width, self.height, self.tiles = width, height, tiles
        self.routers = <Router *> (memory + position)
        position += whole_lines(tiles * sizeof(Router))
        self.active = <int32_t *> (memory + position)
        position += whole_lines(inputs * sizeof(int32_t))
        self.place = <int32_t *> (memory + position)
        position += whole_lines(inputs * sizeof(int32_t))
        self.count_active = <int32_t *> (memory + position)
        position += whole_lines(sizeof(int32_t))
        if memory == NULL:
            return position
        if fresh:
            memset(memory, 0, position)
            for tile in range(tiles):
                for side in range(SIDES):
                    self.routers[tile].owner[side] = -1
                    self.routers[tile].inputs[side].output = -1
                    self.place[SIDES * tile + side] = -1
        self.moves = <int32_t *> malloc(inputs * sizeof(int32_t))
        self.asked = <int32_t *> malloc(inputs * sizeof(int32_t))
        self.beyond = <int32_t *> malloc(inputs * sizeof(int32_t))
        for tile in range(tiles):
            index = SIDES * tile
            self.beyond[index + PROCESSOR] = -1
            self.beyond[index + NORTH] = SIDES * (tile - width) + SOUTH if tile >= width else -1
            self.beyond[index + SOUTH] = SIDES * (tile + width) + NORTH if tile + width < tiles else -1
            self.beyond[index + EAST] = SIDES * (tile + 1) + WEST if tile % width + 1 < width else -1
            self.beyond[index + WEST] = SIDES * (tile - 1) + EAST if tile % width > 0 else -1
        return position

    cdef inline int route(self, int tile, uint32_t header) noexcept nogil:
        cdef int x = tile % self.width
        cdef int y = tile // self.width
        if x_of(header) != x:
            return EAST if x_of(header) > x else WEST
        if y_of(header) != y:
            return SOUTH if y_of(header) > y else NORTH
        return final_of(header)

    cdef uint32_t pop(self, int input) noexcept nogil:
        cdef Buffer *buffer = &self.routers[input // SIDES].inputs[input % SIDES]
        cdef uint32_t word = buffer.words[buffer.head]
        cdef int last, place
        buffer.head = (buffer.head + 1) % BUFFER_WORDS
        buffer.count -= 1
        if buffer.count == 0:
            place = self.place[input]
            self.count_active[0] -= 1
            last = self.active[self.count_active[0]]
            self.active[place] = last
            self.place[last] = place
            self.place[input] = -1
        return word

    cdef void push(self, int input, uint32_t word) noexcept nogil:
        cdef Buffer *buffer = &self.routers[input // SIDES].inputs[input % SIDES]
        buffer.words[(buffer.head + buffer.count) % BUFFER_WORDS] = word
        if buffer.count == 0:
            self.place[input] = self.count_active[0]
            self.active[self.count_active[0]] = input
            self.count_active[0] += 1
        buffer.count += 1

    cdef uint32_t forward(self, int64_t now, int input) noexcept nogil:
        cdef int tile = input // SIDES
        cdef Router *router = &self.routers[tile]
        cdef Buffer *buffer = &router.inputs[input % SIDES]
        cdef int output = buffer.output
        cdef uint32_t word = self.pop(input)
        router.crossed[output] += 1
        if self.recording is not None:
            self.recording.word(now, SIDES * tile + output, word)
        if self.beyond[SIDES * tile + output] >= 0:
            self.push(self.beyond[SIDES * tile + output], word)
        buffer.left -= 1
        if buffer.left == 0:
            router.owner[output] = -1
            buffer.output = -1
        return word

    cdef int cycle(self, int64_t now) noexcept nogil:
        cdef int active = self.count_active[0]
        cdef int moves = 0
        cdef int asked = 0
        cdef int granted = 0
        cdef int index, input, tile, side, output, beyond
        cdef Router *router
        cdef Buffer *buffer
        for index in range(active):
            input = self.active[index]
            tile = input // SIDES
            side = input % SIDES
            router = &self.routers[tile]
            buffer = &router.inputs[side]
            if buffer.output < 0:
                output = self.route(tile, buffer.words[buffer.head])
                if router.owner[output] < 0:
                    if router.asking[output] == 0:
                        self.asked[asked] = SIDES * tile + output
                        asked += 1
                    router.asking[output] |= 1 << side
        for index in range(asked):
            tile = self.asked[index] // SIDES
            output = self.asked[index] % SIDES
            router = &self.routers[tile]
            side = router.turn[output]
            while not router.asking[output] >> side & 1:
                side = (side + 1) % SIDES
            router.asking[output] = 0
            router.owner[output] = side
            router.turn[output] = (side + 1) % SIDES
            buffer = &router.inputs[side]
            buffer.output = output
            buffer.left = length_of(buffer.words[buffer.head]) + 1
            granted += 1
            if output == PROCESSOR and not router.unattended:
                self.moves[moves] = SIDES * tile + side    # the header, which ends here
                moves += 1
        for index in range(active):
            input = self.active[index]
            router = &self.routers[input // SIDES]
            buffer = &router.inputs[input % SIDES]
            output = buffer.output
            if output < 0 or output == PROCESSOR and not router.unattended:
                continue
            beyond = self.beyond[input - input % SIDES + output]
            if beyond < 0 or self.routers[beyond // SIDES].inputs[beyond % SIDES].count < BUFFER_WORDS:
                self.moves[moves] = input
                moves += 1
        for index in range(moves):
            self.forward(now, self.moves[index])
        return granted + moves
