# One call's steps: collectives of the two levels, by whoever serves those.
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap
from ompy.mca.coll cimport CollectiveCall, CollTable

from ompy_coll_han.levels cimport Levels


cdef class Steps:
    cdef Levels levels
    cdef Communicator comm
    cdef Schedule schedule                       # scratch memory, and messages between a leader and the root on its host

    # What the job board shows of those who wait.
    cdef int show(self, int operation) noexcept

    # Memory of the call's own for so many bytes.
    cdef size_t memory(self, Py_ssize_t nbytes) except? 0

    # A call of a step, whose memory lives as long as anybody may look at it.
    cdef CollectiveCall call(self, int root)

    # The call of a broadcast; and the broadcast.
    cdef CollectiveCall message(self, size_t address, Py_ssize_t count, Typemap typemap, int root)
    cdef int bcast(self, Communicator level, size_t address, Py_ssize_t count, Typemap typemap, int root) except -1
    # From one rank of the whole communicator to another; nothing where they are one.
    cdef int hand_over(self, size_t address, Py_ssize_t count, Typemap typemap, int source, int target) except -1
    # The call of anything else.
    cdef CollectiveCall blocks(self, size_t send, Py_ssize_t send_count, Typemap send_type, size_t recv, Py_ssize_t recv_count,
                               Typemap recv_type, int root)
    # The counts of each host's blocks of so many bytes, and where they lie in the order of places.
    cdef int share_out(self, CollectiveCall call, Py_ssize_t nbytes, bint sending) except -1


cdef class Pipeline:
    """Collectives of a level that are under way while others go on."""
    cdef Communicator level
    cdef list requests

    cdef int begin(self, int function, CollectiveCall call) except -1
    cdef int finish_first(self) except -1
    # Until no more than so many are under way.
    cdef int keep(self, int most) except -1


cdef inline int carry_out(Communicator level, int function, CollectiveCall call) except -1:
    return (<CollTable> level.coll).of(function).run(function, call, level)
