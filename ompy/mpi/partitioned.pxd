# Partitioned communication (MPI-4.1, chapter 4).
#
# The partitions of one start travel as one message, sent when the last of them is ready: MPI lets a library gather
# partitions, and so a sender and a receiver may cut the same data differently.
#
# The first send that was initialised for a receiver and tag belongs to the first receive that was, in whatever order
# they are started (4.2).  So the two agree when they are initialised, by a message that keeps MPI's order, and have a channel,
# a tag of their own, from then on:
#
#     rank 0                                                      rank 1
#     A = Psend_init(tag 5)   waits for a channel, first          a = Precv_init(tag 5)   channel 17: told to rank 0 -->
#     B = Psend_init(tag 5)   second                              b = Precv_init(tag 5)   channel 18 -->
#                        17 is A's, 18 is B's
#     B.Start, all ready:  message on 18 ----------------------->  b, whether a is started or not
#
# All of it has tags of the library's own, which meet neither wildcards nor ordinary receives.
from libc.stdint cimport int64_t

from ompy.core.communicator cimport Communicator
from ompy.core.request cimport Request
from ompy.core.typemap cimport Typemap

cdef class PartitionedRequest(Request):
    cdef readonly int partitions
    cdef Request transfer                        # the persistent operation behind it; None for PROC_NULL, or without a channel
    cdef Request agreement                       # the message that tells the channel; None for PROC_NULL
    cdef int64_t channel
    cdef bint sends
    cdef bint due                                # all is ready, and waits for the channel
    cdef int missing                             # partitions of the current start that are not ready
    cdef unsigned char *is_ready                 # one flag a partition, of a sender
    cdef size_t address
    cdef Py_ssize_t count                        # elements of all partitions
    cdef Typemap typemap

    cdef int agree(self, size_t address, Py_ssize_t count, Typemap typemap, int peer, int tag, Communicator comm) except -1
    cdef int send_all(self) except -1
    cdef int run_on(self, Request transfer) except -1
    cdef int check(self, int partition) except -1
    cdef int ready(self, int low, int high) except -1
    cdef bint arrived(self, int partition) except -1


# With nobody: PROC_NULL.
cdef PartitionedRequest new_partitioned(int partitions, bint sends)
# With a peer; the memory is that of all partitions.
cdef PartitionedRequest new_channel(int partitions, bint sends, size_t address, Py_ssize_t count, Typemap typemap, int peer,
                                    int tag, Communicator comm)
