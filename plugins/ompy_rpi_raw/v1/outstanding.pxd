# Version I's Outstanding Messages Structure (thesis, figure 3-4).
#
#     OutstandingMsgs      [0]    [1] -> tag 7, done -> tag 9, 12 words remaining        a list of tags for each source
#                                          |               |
#                                       packet buffers  packet buffers
from ompy.mca.rpi cimport Incoming
from ompy_rpi_raw.message cimport Stored


cdef class TagNode:
    cdef int tag
    cdef Stored message
    cdef TagNode previous, next


cdef class OutstandingMessages:
    cdef list heads                              # by source: the oldest TagNode, or None
    cdef readonly int visited                    # nodes, in the last call

    cdef int add(self, Stored message) except -1
    cdef int remove(self, Stored message) except -1
    # The message of which this packet is another part: the one of its source and tag that has begun and is not done.
    cdef Stored unfinished(self, int source, int tag)
    cdef Stored find(self, Incoming wanted)
    cdef list messages(self)

    cdef Stored find_from(self, int source, Incoming wanted)
