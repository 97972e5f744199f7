# The numbers that every layer agrees on.  Values follow Open MPI's `mpi.h`.

cdef enum:
    ANY_SOURCE = -1
    ANY_TAG = -1
    PROC_NULL = -2
    ROOT = -4
    UNDEFINED = -32766
    TAG_UPPER_BOUND = 2147483647

# Tags below zero belong to the library: MPI_ANY_TAG never matches them (ob1 and every other PML hold to that), so that
# collectives share a communicator's context with the program's messages.
#
#    -2          -16 ... -2^30      then four ranges of 2^28, down to -2^31
#    contexts    collective calls   persistent collectives | agreements | partitioned: agreements | channels
cdef enum:
    TAG_CONTEXT = -2                    # agreement on a new communicator's context, outside any collective
    TAG_COLLECTIVE_FIRST = -16          # schedules count down from here, one tag a collective call
    TAG_COLLECTIVE_LAST = -1073741824
    TAGS = 268435456                    # of a range; each of the following is its first, and the highest
    TAG_PERSISTENT = -1073741825        # one tag a persistent collective
    TAG_AGREEMENT = -1342177281         # agreements under a tag of the program's, modulo TAGS
    TAG_PARTITIONED = -1610612737       # the same for partitioned messages,
    TAG_CHANNEL = -1879048193           # which then have channels, numbered modulo TAGS

# What a function that can be refused for want of resources returns.  Never an exception: back-pressure is ordinary.
cdef enum:
    OK = 0
    OUT_OF_RESOURCE = 1

# Send modes (MPI-4.1, 3.4).
cdef enum:
    MODE_STANDARD = 0
    MODE_BUFFERED = 1
    MODE_SYNCHRONOUS = 2
    MODE_READY = 3
