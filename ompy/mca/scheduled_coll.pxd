# Around collectives: a component whose algorithms write schedules, and what such algorithms ask of a call.
#
#     component      write(schedule, function, call, comm): chooses an algorithm, which writes this rank's part
#     here           run, start and init: the same schedule, blocking, non-blocking and persistent
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap
from ompy.mca.coll cimport CollectiveCall, CollModule
from ompy.mca.coll_layout cimport Layout


cdef class ScheduledColl(CollModule):
    # Write this rank's part of the call; its displacements are never NULL where it has counts.
    cdef int write(self, Schedule schedule, int function, CollectiveCall call, Communicator comm) except -1
    cdef int fill(self, Schedule schedule, int function, CollectiveCall call, Communicator comm) except -1


# Bytes of one block of the call, the same number on every rank, so that all can decide by it:
#
#     bcast, reduce, allreduce, scan, exscan              the message
#     gather, scatter, allgather, alltoall,
#     reduce_scatter_block                                one rank's block
#     allgatherv, reduce_scatter                          the mean of the ranks' blocks
#     all others                                          0: no rank knows what the others know
cdef Py_ssize_t block_bytes(int function, CollectiveCall call, Communicator comm)

# A copy of blocks whose place what arrives will take (an alltoall in place), packed, as blocks of bytes.
cdef Layout set_aside(Schedule schedule, Layout *blocks, int count)

# A rank's contribution to a reduction: in place, it lies where the result goes.
cdef inline size_t own_address(CollectiveCall call):
    return call.recv_address if call.send_in_place else call.send_address

cdef inline Py_ssize_t own_count(CollectiveCall call):
    return call.recv_count if call.send_in_place else call.send_count

cdef inline Typemap own_type(CollectiveCall call):
    return call.recv_type if call.send_in_place else call.send_type

# Parts of a vector: where part number `part` of `parts` begins; the first are one longer when they don't come out even.
cdef inline Py_ssize_t first_of(Py_ssize_t count, int part, int parts) noexcept:
    return part * (count // parts) + min(<Py_ssize_t> part, count % parts)
