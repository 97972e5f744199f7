# The recorder of what becomes of each message: events in a ring of C structs, one ring a process, in a file that is mapped,
# so that what a rank did before it was killed can still be read.
#
# Whoever has something to record asks `is_tracing()` first, which costs a look at a word that never changes; the GIL is held.
#
#     sender                 receiver
#     SENT                   KEPT                 a short message at once; its receive is not posted yet
#     STARTED                POSTED               requests, each until COMPLETED
#       ANNOUNCED              MATCHED            the protocol is chosen; source, tag and length are known
#       FRAGMENT ...           FRAGMENT ...       bytes sent, received, written or read
#     COMPLETED              COMPLETED
#     WAITED                 WAITED               in a wait that did not end at once
#
# A message is the same on both sides by (context, source, destination, sequence).
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum EventKind:
    EVENT_SENT = 1
    EVENT_STARTED = 2
    EVENT_ANNOUNCED = 3
    EVENT_FRAGMENT = 4
    EVENT_COMPLETED = 5
    EVENT_POSTED = 6
    EVENT_MATCHED = 7
    EVENT_KEPT = 8
    EVENT_WAITED = 9

# `detail` of ANNOUNCED and FRAGMENT: how the bytes go.
cdef enum Way:
    WAY_EAGER = 1
    WAY_RENDEZVOUS = 2
    WAY_READ = 3
    WAY_WRITE = 4
    WAY_SEND = 5

cdef struct Event:
    int64_t time                    # when it was over, nanoseconds of CLOCK_MONOTONIC
    int64_t begun                   # SENT, WAITED: when it began
    uint64_t request                # the request's address, 0 for none
    uint64_t context                # of the communicator
    uint64_t nbytes
    int32_t source, destination     # ranks of the communicator; -1 for any
    int32_t tag
    uint32_t sequence
    uint8_t kind
    uint8_t detail                  # a Way; of WAITED the operation, as the job board numbers them

cdef struct Ring:
    char magic[8]
    int64_t epoch                   # CLOCK_REALTIME - CLOCK_MONOTONIC, nanoseconds
    uint64_t capacity               # a power of two
    uint64_t written                # events so far; the oldest are overwritten
    uint32_t rank
    uint32_t pid
    char host[64]

cdef bint tracing                   # ask is_tracing

cdef extern from *:
    """
    #include <stdint.h>
    #include <time.h>
    static inline int64_t ompy_trace_now(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    }
    """
    bint unlikely "__builtin_expect"(bint condition, long expected) noexcept nogil
    int64_t trace_clock "ompy_trace_now"() noexcept nogil


cdef inline bint is_tracing() noexcept nogil:
    return unlikely(tracing, 0)


# `begun` 0: none.  Only while `is_tracing()`.
cdef void record(int kind, int detail, void *request, uint64_t context, int source, int destination, int tag,
                 uint32_t sequence, uint64_t nbytes, int64_t begun) noexcept nogil
