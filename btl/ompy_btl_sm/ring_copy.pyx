# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""How long payloads are written into a ring; see `ring_copy.pxd`."""
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from ompy.core.copying cimport copy_out, stream_out

cdef enum:
    RUNS = 8                                     # timed in all
    RINGS = 3                                    # filled in a run
    INTERRUPTION = 1000                          # nanoseconds without a fragment, though there was room for it
# What streaming has to be quicker by: the reader finds nothing in a cache afterwards.
cdef double MARGIN = 0.9


cdef int64_t nanoseconds() noexcept nogil:
    cdef timespec moment
    clock_gettime(CLOCK_MONOTONIC, &moment)
    return moment.tv_sec * <int64_t> 1000000000 + moment.tv_nsec


cdef void open_trial(Trial *trial, RingCopy way) noexcept:
    trial.way = CACHED if way == MEASURED else way
    trial.runs_left = RUNS if way == MEASURED else 0
    trial.written = trial.streamed = 0
    trial.ended = 0
    trial.waiting = False
    trial.cost[0] = trial.cost[1] = 0


cdef bint write_long(Trial *trial, char *to, const char *origin, size_t size, size_t ring_size) noexcept nogil:
    cdef int64_t now
    cdef bint in_run = False
    if trial.runs_left:
        now = nanoseconds()
        in_run = trial.waiting or now - trial.ended < INTERRUPTION
        trial.waiting = False
        if not in_run:
            trial.written = 0
        elif trial.written == 0:
            trial.begun = now
    if trial.way == STREAMING and (in_run or not trial.runs_left):
        stream_out(to, origin, size)
        trial.streamed += size
    else:
        copy_out(to, origin, size)
    if trial.runs_left:
        trial.ended = nanoseconds()
    if in_run:
        trial.written += size
        if trial.written >= RINGS * ring_size:
            return end_run(trial)
    return False


cdef bint end_run(Trial *trial) noexcept nogil:
    cdef double cost = <double> (trial.ended - trial.begun) / trial.written
    if trial.cost[<int> trial.way] == 0 or cost < trial.cost[<int> trial.way]:
        trial.cost[<int> trial.way] = cost
    trial.written = 0
    trial.runs_left -= 1
    if trial.runs_left:
        trial.way = STREAMING if trial.way == CACHED else CACHED
        return False
    trial.way = STREAMING if trial.cost[<int> STREAMING] < MARGIN * trial.cost[<int> CACHED] else CACHED
    return True
