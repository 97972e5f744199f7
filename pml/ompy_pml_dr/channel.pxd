# What both sides of a pair keep of each other's packets.
#
#     to the peer     oldest 5         next_sequence 9
#                       |                 |
#           ... 3  4   [5] 6  [7][8]      9 ...        5, 7, 8 wait for their acknowledgement, 6 has it
#
#     from it         expected 5, received 0b0010      all before 5 have come, and 6; told with each frame that goes there
#
# A packet that comes again is known by that and dropped; one that comes early is handed on at once, because the PML above
# puts messages in order.  A packet is sent again when its time-out is over, or as soon as three later ones have arrived that
# went the same way.
#
# The numbers are the pair's, whichever of its paths (`path.pxd`) a packet goes over: over one path and, when that is lost, over
# another, it is the same packet, and comes once.
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from ompy.core.proc cimport Proc
from ompy.mca.btl_wrapper cimport WrapperEndpoint

cdef enum:
    WINDOW = 64                     # packets under way at most; the bits of Frame.received
    NOWHERE = -1                    # a packet that waits for a path

cdef struct Packet:
    char *bytes                     # frame, then data
    size_t capacity
    size_t length
    int tag
    int tries
    int32_t path                    # that has taken it last, or NOWHERE
    int64_t sent                    # when it was last sent, nanoseconds
    bint waiting                    # for its acknowledgement

# Settings, times in nanoseconds.
cdef struct Patience:
    int64_t first, shortest, longest
    int64_t ack_delay
    int64_t failover                # without any path
    int retry_limit


# What a pair's acknowledgements tell of one of its paths.
cdef class PathRecord(WrapperEndpoint):
    cdef int misses                 # packets whose time was over here, since one was acknowledged at its first try
    cdef int64_t refuses_since      # it has taken nothing, nor was anything acknowledged; 0: it takes what it is given
    cdef int64_t confirmed          # when a packet was last acknowledged that had gone here


cdef class Channel:
    cdef readonly Proc proc
    cdef readonly list paths        # Path, each at its number
    cdef Packet packets[WINDOW]     # by sequence, modulo
    cdef uint32_t oldest, next_sequence
    cdef size_t bytes_under_way
    cdef int64_t timeout, deadline  # of the oldest packet; no deadline: 0
    cdef int64_t round_trip, variation
    cdef uint32_t expected
    cdef uint64_t received          # bit i: expected + i has come
    cdef int debt                   # packets that came and were not acknowledged yet
    cdef int64_t debt_due           # when they are to be; 0 for no debt
    cdef int32_t debt_path          # by which the last of them came
    cdef int64_t stranded           # since when no path stands; 0: one does
    cdef bint has_strays            # packets that wait for a path
    cdef bint is_complete           # every BTL that can renew has been asked for a path
    cdef bint lost                  # given up
    cdef object error               # why
    cdef bint busy                  # has a deadline or a debt

    # A free packet with room for so many bytes.
    cdef Packet *claim(self, size_t length) except NULL
    cdef void release(self, Packet *packet) noexcept
    cdef void clear(self) noexcept
    # Has the packet come before?  If not, it now has.
    cdef bint note_arrival(self, uint32_t sequence) noexcept
    # The peer has told what it has; returns how many packets were settled.
    cdef int settle(self, uint32_t acknowledged, uint64_t received, int64_t now, const Patience *patience) noexcept
    cdef void measure(self, int64_t sample) noexcept
