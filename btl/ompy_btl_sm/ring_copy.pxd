# How long payloads are written into the ring towards one peer: by ordinary stores, or past the caches by non-temporal ones.
#
# Which is quicker depends on how far the two cores are apart, and that changes where the system moves ranks, or a hypervisor
# the cores; so it is measured all the time, on the payloads themselves (`ompy/core/pace.pxd`).  The writer knows its own
# part alone.  For the reader, lines that are in no cache come from memory, which takes it longer than from another core
# nearby; so streaming has to be quicker by far:
#
#     64 KiB, Zen 3, us      one word there and back    written and read: ordinary       written and read: streaming
#     near                   0.10                       1.6 + 1.7                        3.6 + 4.3
#     farther                0.18                       2.6 + 1.9                        2.6 + 5.0
#     far                    0.62                       11.1 + 7.4                       3.0 + 6.7
from libc.stdint cimport uint64_t

from ompy.core.pace cimport Pace

cdef enum RingCopy:
    CACHED
    STREAMING
    MEASURED                                     # as it turns out

cdef enum:
    LONG = 32768                                 # bytes of a payload from which on it matters

cdef struct LongWrites:
    RingCopy chosen                              # by parameter
    RingCopy usual                               # MEASURED: not known yet
    uint64_t streamed                            # bytes past the caches in all
    Pace pace

cdef void open_long_writes(LongWrites *writes, RingCopy chosen) noexcept
# What the writer's part of a MiB takes, of late, in microseconds.
cdef double cost_of(const LongWrites *writes, RingCopy way) noexcept nogil
# Copies one long payload.  True when another way than before is the usual one from here on.
cdef bint write_long(LongWrites *writes, char *to, const char *origin, size_t size) noexcept nogil
