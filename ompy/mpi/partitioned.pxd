# Partitioned communication (MPI-4.1, chapter 4).
#
# The partitions of one start travel as one message, sent when the last of them is ready: MPI lets a library gather
# partitions, and so a sender and a receiver may cut the same data differently.  The messages have tags of the library's
# own, so that they meet neither wildcards nor ordinary receives.
from ompy.core.request cimport Request

cdef class PartitionedRequest(Request):
    cdef readonly int partitions
    cdef Request transfer                        # the persistent operation behind it, or None for PROC_NULL
    cdef bint sends
    cdef int missing                             # partitions of the current start that are not ready
    cdef unsigned char *is_ready                 # one flag a partition, of a sender

    cdef int check(self, int partition) except -1
    cdef int ready(self, int low, int high) except -1
    cdef bint arrived(self, int partition) except -1


cdef int partitioned_tag(int tag) noexcept
cdef PartitionedRequest new_partitioned(int partitions, Request transfer, bint sends)
