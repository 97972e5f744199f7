# How long payloads are written into the ring towards one peer: by ordinary stores, or past the caches by non-temporal ones.
#
# Which is quicker depends on how far the two cores are apart and on what the reader does meanwhile, so it is measured where it
# matters: on the first long messages themselves.  A *run* is three rings full of fragments, one right behind the other; runs
# are timed in turns, and the way of the quickest is kept.
#
#     fragments  | cached x 12 | streaming x 12 | cached x 12 | streaming x 12 | ...   the quicker way for all that follow
#
# A run that the sender itself interrupts (the message was over) says nothing and begins again; one that waits for the reader
# goes on, as that is what is to be measured.  Until the end of the trial a payload that follows no other goes by ordinary
# stores.
from libc.stdint cimport int64_t, uint64_t

cdef enum RingCopy:
    CACHED
    STREAMING
    MEASURED                                     # as it turns out

cdef enum:
    LONG = 32768                                 # bytes of a payload from which on it matters

cdef struct Trial:
    RingCopy way                                 # now
    int runs_left                                # 0: decided
    bint waiting                                 # for the reader, since the last fragment
    size_t written                               # bytes in this run
    uint64_t streamed                            # bytes past the caches in all
    int64_t begun, ended                         # nanoseconds: the run's first fragment, the last one so far
    double cost[2]                               # of the quickest run each way, nanoseconds a byte; 0: none yet

cdef void open_trial(Trial *trial, RingCopy way) noexcept
# Copies one long payload; `ring_size` in bytes.  True when this copy was the last that the trial needed.
cdef bint write_long(Trial *trial, char *to, const char *origin, size_t size, size_t ring_size) noexcept nogil
