# The numbers that every layer agrees on.  Values follow Open MPI's `mpi.h`.

cdef enum:
    ANY_SOURCE = -1
    ANY_TAG = -1
    PROC_NULL = -2
    ROOT = -4
    UNDEFINED = -32766
    TAG_UPPER_BOUND = 536870911

# Tags below zero belong to the library: MPI_ANY_TAG never matches them (ob1 and every other PML hold to that), so that
# collectives share a communicator's context with the program's messages.
#
#    -2          -16 ... -2^28      then two ranges of 2^28             and two of 2^29, one tag for each of a program's
#    contexts    collective calls   persistent collectives | channels   agreements | partitioned messages' agreements
cdef enum:
    TAG_CONTEXT = -2                    # agreement on a new communicator's context, outside any collective
    TAG_COLLECTIVE_FIRST = -16          # schedules count down from here, one tag a collective call
    TAG_COLLECTIVE_LAST = -268435456
    TAGS = 268435456                    # of the next two ranges; each of the following is the first, and the highest
    TAG_PERSISTENT = -268435457         # one tag a persistent collective
    TAG_CHANNEL = -536870913            # of partitioned messages, numbered modulo TAGS
    TAG_AGREEMENT = -805306369          # agreements under a tag of the program's,
    TAG_PARTITIONED = -1342177281       # and those of partitioned messages

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
