# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""What a run leaves behind: words that crossed the wires, and samples over time.  See `recording.pxd`."""
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memset

from ompy_raw.header cimport SIDES

cdef int64_t FIRST_INTERVAL = 1                  # cycles


cdef inline size_t whole_lines(size_t size) noexcept nogil:
    return (size + 63) // 64 * 64


cdef class Recording:
    """Room for what a chip records.

    Parameters:
        tiles: of the chip.
        most_crossings: words on wires that are kept, the first ones.
        most_samples: moments at which links and buffers are kept.
    """

    def __init__(self, int tiles, int most_crossings=0, int most_samples=0):
        self.tiles = tiles
        self.most_crossings = max(most_crossings, 0)
        self.most_samples = max(most_samples, 0)

    cdef size_t lay_out(self, char *memory, bint fresh) noexcept:
        cdef size_t width = SIDES * self.tiles
        cdef size_t position = 0
        self.state = <RecordingState *> (memory + position)
        position += whole_lines(sizeof(RecordingState))
        self.crossings = <Crossing *> (memory + position)
        position += whole_lines(self.most_crossings * sizeof(Crossing))
        self.sample_cycles = <int64_t *> (memory + position)
        position += whole_lines(self.most_samples * sizeof(int64_t))
        self.crossed = <int64_t *> (memory + position)
        position += whole_lines(self.most_samples * width * sizeof(int64_t))
        self.occupancy = <uint8_t *> (memory + position)
        position += whole_lines(self.most_samples * width)
        if memory != NULL and fresh:
            memset(memory, 0, position)
            self.state.interval = FIRST_INTERVAL
            if self.most_samples < 2:
                self.state.next_sample = 0x7FFFFFFFFFFFFFFF
        return position

    cdef int begin_sample(self, int64_t cycle) noexcept nogil:
        cdef int width = SIDES * self.tiles
        cdef int index
        if self.state.samples == self.most_samples:
            for index in range(self.most_samples // 2):
                self.sample_cycles[index] = self.sample_cycles[2 * index]
                memcpy(self.crossed + index * width, self.crossed + 2 * index * width, width * sizeof(int64_t))
                memcpy(self.occupancy + index * width, self.occupancy + 2 * index * width, width)
            self.state.samples = self.most_samples // 2
            self.state.interval *= 2
        self.state.next_sample = (cycle // self.state.interval + 1) * self.state.interval
        self.sample_cycles[self.state.samples] = cycle
        self.state.samples += 1
        return self.state.samples - 1

    def words(self) -> list[tuple[int, int, int, int]]:
        """(cycle, tile, side of its router that the word left through, word), in the order of cycles."""
        cdef int64_t index
        cdef int64_t kept = min(self.state.crossings_seen, self.most_crossings)
        return [
            (self.crossings[index].cycle, self.crossings[index].output // SIDES, self.crossings[index].output % SIDES,
             self.crossings[index].word)
            for index in range(kept)
        ]

    def words_seen(self) -> int:
        """Words that crossed wires, kept or not."""
        return self.state.crossings_seen

    def samples(self) -> list[tuple[int, list[int], list[int]]]:
        """(cycle, words in each input buffer, words out of each output until then); both by 5 * tile + side."""
        cdef int width = SIDES * self.tiles
        cdef int index, place
        return [
            (self.sample_cycles[index],
             [self.occupancy[index * width + place] for place in range(width)],
             [self.crossed[index * width + place] for place in range(width)])
            for index in range(self.state.samples)
        ]
