from libc.stdint cimport int64_t

# The clock that a program sees: the host's, unless a component that simulates a machine has put its own in place.
ctypedef double (*ClockFunction)(void *context) noexcept

# From now on `Wtime` is `read(context)`, in seconds, in steps of `tick`; `owner` is kept alive.  NULL: the host's again.
cdef int replace(ClockFunction read, void *context, double tick, object owner) except -1
cdef double now() noexcept
cdef double resolution() noexcept

# The host's clock, nanoseconds, by which waits are timed.
cdef extern from *:
    """
    #include <stdint.h>
    #include <time.h>

    static inline int64_t ompy_now(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    }
    static inline void ompy_rest(int64_t nanoseconds) {
        struct timespec time = {0, nanoseconds};
        nanosleep(&time, NULL);
    }
    """
    int64_t clock_now "ompy_now"() noexcept nogil
    void rest_for "ompy_rest"(int64_t nanoseconds) noexcept nogil
