# What a run leaves behind for people and tests: words that crossed the wires, and samples of links and buffers over time.
#
# Samples are taken every `interval` cycles; when their room is full, every second one is dropped and the interval doubled,
# so that a run of any length keeps between half of and all of the samples.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

# A word that left a tile through one side of its router; side PROCESSOR: it reached its tile.
cdef struct Crossing:
    int64_t cycle
    uint32_t word
    int32_t output                               # 5 * tile + side

cdef struct RecordingState:
    int64_t crossings_seen
    int64_t interval, next_sample
    int32_t samples

cdef class Recording:
    cdef readonly int tiles
    cdef readonly int most_crossings, most_samples
    cdef RecordingState *state
    cdef Crossing *crossings                     # the first `most_crossings`
    cdef int64_t *sample_cycles
    cdef uint8_t *occupancy                      # words in each input, per sample: 5 * tiles
    cdef int64_t *crossed                        # words out of each output until then, per sample: 5 * tiles

    cdef size_t lay_out(self, char *memory, bint fresh) noexcept

    cdef inline void word(self, int64_t cycle, int output, uint32_t word) noexcept nogil:
        cdef int64_t index = self.state.crossings_seen
        self.state.crossings_seen += 1
        if index < self.most_crossings:
            self.crossings[index] = Crossing(cycle, word, output)
    # Makes room for a sample of that cycle; its number.
    cdef int begin_sample(self, int64_t cycle) noexcept nogil
