# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""How long payloads are written into a ring; see `ring_copy.pxd`."""
from libc.stdint cimport int64_t
from libc.string cimport memset

from ompy.core.copying cimport copy_out, stream_out
from ompy.core.pace cimport best_of, note_pace, quickest
from ompy.core.clock cimport clock_now

cdef enum:
    TRIES = 8                                    # until a way is called the usual one
# What streaming has to be quicker by.
cdef double HANDICAP = 2.5


cdef void open_long_writes(LongWrites *writes, RingCopy chosen) noexcept:
    memset(writes, 0, sizeof(LongWrites))
    writes.chosen = writes.usual = chosen


cdef double cost_of(const LongWrites *writes, RingCopy way) noexcept nogil:
    return writes.pace.took[<int> way] * 1.024 / (HANDICAP if way == STREAMING else 1.0)


cdef bint write_long(LongWrites *writes, char *to, const char *origin, size_t size) noexcept nogil:
    cdef RingCopy way = writes.chosen, before = writes.usual
    cdef int64_t begun = 0, took
    if writes.chosen == MEASURED:
        way = <RingCopy> quickest(&writes.pace, MEASURED)
        begun = clock_now()
    if way == STREAMING:
        stream_out(to, origin, size)
        writes.streamed += size
    else:
        copy_out(to, origin, size)
    if writes.chosen != MEASURED:
        return False
    took = clock_now() - begun
    note_pace(&writes.pace, way, size, HANDICAP * took if way == STREAMING else took)
    if writes.pace.turn >= TRIES:
        writes.usual = <RingCopy> best_of(&writes.pace, MEASURED)
    return writes.usual != before
