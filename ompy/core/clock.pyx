# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The clock that a program sees."""
from posix.time cimport CLOCK_MONOTONIC, clock_getres, clock_gettime, timespec

cdef ClockFunction reader = NULL
cdef void *reader_context = NULL
cdef double reader_tick = 0
cdef object reader_owner = None


cdef int replace(ClockFunction read, void *context, double tick, object owner) except -1:
    global reader, reader_context, reader_tick, reader_owner
    reader, reader_context, reader_tick, reader_owner = read, context, tick, owner
    return 0


cdef double now() noexcept:
    cdef timespec moment
    if reader != NULL:
        return reader(reader_context)
    clock_gettime(CLOCK_MONOTONIC, &moment)
    return moment.tv_sec + moment.tv_nsec * 1e-9


cdef double resolution() noexcept:
    cdef timespec step
    if reader != NULL:
        return reader_tick
    clock_getres(CLOCK_MONOTONIC, &step)
    return step.tv_sec + step.tv_nsec * 1e-9


def is_simulated() -> bool:
    """Whether a simulated machine's clock is in place."""
    return reader != NULL
