# Partitioned communication (MPI-4.1, chapter 4).
#
# Partitions travel in parts, each a message that leaves when all partitions of the sender that have bytes in it are ready.  The
# receiver cuts, between partitions of its own, since a sender and a receiver may cut the same data differently; a short message
# is one part:
#
#     sender      |  0  |  1  |  2  |  3  |  4  |  5  |
#     receiver    |   0    |   1    |   2    |   3    |
#     parts       |        0        |        1        |       part 1 leaves when 3, 4 and 5 are ready, and then 2 and 3 arrive
#
# The first send that was initialised for a receiver and tag belongs to the first receive that was, in whatever order
# they are started (4.2).  So the two agree when they are initialised, by a message that keeps MPI's order and tells how the
# receiver cuts, and have channels, tags of their own, from then on, one a part:
#
#     rank 0                                                      rank 1
#     A = Psend_init(tag 5)   waits for a channel, first          a = Precv_init(tag 5)   channels 17, 18: told to rank 0 -->
#     B = Psend_init(tag 5)   second                              b = Precv_init(tag 5)   channel 19 -->
#                        17 and 18 are A's, 19 is B's
#     B.Start, all ready:  message on 19 ----------------------->  b, whether a is started or not
#
# All of it has tags of the library's own, which meet neither wildcards nor ordinary receives.
from libc.stdint cimport int64_t

from ompy.core.communicator cimport Communicator
from ompy.core.request cimport Request
from ompy.core.typemap cimport Typemap

# How a receiver cuts.
cdef struct Cut:
    int64_t channel                              # of the first part
    int64_t parts
    int64_t partitions                           # of the receiver
    int64_t nbytes                               # that it expects

cdef class PartitionedRequest(Request):
    cdef readonly int partitions
    cdef list transfers                          # the persistent operation of each part; none for PROC_NULL, or without a cut
    cdef Request agreement                       # the message that tells the cut; None for PROC_NULL
    cdef Cut cut
    cdef bint sends
    cdef bint released                           # freed, perhaps through another handle
    cdef int left                                # parts of the current start that are under way, or wait for partitions
    cdef object failed                           # the first error of a part, or None
    cdef unsigned char *is_ready                 # one flag a partition, of a sender
    cdef int *missing                            # partitions that are not ready, of each part
    cdef bytearray packed                        # what is sent, where a part ends within an element; or None
    cdef size_t address
    cdef Py_ssize_t count                        # elements of all partitions
    cdef Typemap typemap

    cdef int agree(self, size_t address, Py_ssize_t count, Typemap typemap, int peer, int tag, Communicator comm) except -1
    cdef int open(self) except -1
    cdef int open_part(self, int part, Py_ssize_t begin, Py_ssize_t end) except -1
    cdef int begin_sending(self) except -1
    cdef int mark(self, int partition) except -1
    cdef int first_part(self, int partition) noexcept
    cdef int last_part(self, int partition) noexcept
    cdef int part_of(self, int64_t offset) noexcept
    cdef int send_part(self, int part) except -1
    cdef int over(self, object error) except -1
    cdef int check(self, int partition) except -1
    cdef int ready(self, int low, int high) except -1
    cdef bint arrived(self, int partition) except -1


# With nobody: PROC_NULL.
cdef PartitionedRequest new_partitioned(int partitions, bint sends)
# With a peer; the memory is that of all partitions.
cdef PartitionedRequest new_channel(int partitions, bint sends, size_t address, Py_ssize_t count, Typemap typemap, int peer,
                                    int tag, Communicator comm)
