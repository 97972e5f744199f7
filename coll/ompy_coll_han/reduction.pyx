# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Reductions by the two levels."""
from ompy.core.communicator cimport Communicator
from ompy.core.typemap cimport Typemap
from ompy.mca.coll cimport ALLREDUCE, REDUCE
from ompy.mca.scheduled_coll cimport own_address, own_count, own_type

from ompy_coll_han.levels cimport Levels
from ompy_coll_han.steps cimport Pipeline, carry_out


cdef int reduce(Steps steps, CollectiveCall call) except -1:
    """Within each host to its leader, from leaders to that of the root's host, and from that to the root."""
    cdef Levels levels = steps.levels
    cdef Communicator low = levels.low
    cdef int root = call.root, home = levels.host_of[root], leader = levels.leader_of(home)
    cdef bint is_root = steps.comm.rank == root, at_home = levels.host == home, is_leader = levels.up is not None
    # The result's place has this rank's own part, or by then its host's.
    cdef bint in_place = is_root and is_leader and call.send_in_place
    cdef size_t own = own_address(call), result = 0
    cdef Py_ssize_t count = own_count(call)
    cdef Typemap typemap = own_type(call)
    cdef CollectiveCall step
    if is_leader:
        # Here the host's own reduction, and at the root's leader then that of all.
        result = call.recv_address if is_root else steps.schedule.scratch(count, typemap)
    if low.size > 1:
        step = steps.blocks(own, count, typemap, result, count, typemap, 0)
        step.operation = call.operation
        step.send_in_place = in_place
        carry_out(low, REDUCE, step)
        own, in_place = result, at_home
    if is_leader:
        step = steps.blocks(own, count, typemap, result, count, typemap, home)
        step.operation = call.operation
        step.send_in_place = in_place
        carry_out(levels.up, REDUCE, step)
    return steps.hand_over(call.recv_address if is_root else result, count, typemap, leader, root)


cdef int reduce_low(Steps steps, CollectiveCall call, size_t own, size_t result, Py_ssize_t count) except -1:
    """Of this host, to its leader's `result`."""
    cdef CollectiveCall step
    if steps.levels.low.size == 1:
        return 0
    step = steps.blocks(own, count, call.recv_type, result, count, call.recv_type, 0)
    step.operation = call.operation
    step.send_in_place = call.send_in_place and steps.levels.up is not None
    return carry_out(steps.levels.low, REDUCE, step)


cdef CollectiveCall among_leaders(Steps steps, CollectiveCall call, size_t own, size_t result, Py_ssize_t count):
    """Where the host has other ranks its own reduction is in `result` by now."""
    cdef CollectiveCall step = steps.blocks(own, count, call.recv_type, result, count, call.recv_type, 0)
    step.operation = call.operation
    step.send_in_place = call.send_in_place or steps.levels.low.size > 1
    return step


cdef int allreduce(Steps steps, CollectiveCall call, Py_ssize_t segment) except -1:
    """Within each host to its leader, among leaders, and the result to all of each host.

        two pieces, a leader      low 1    low 2    tell 1    tell 2
                                           up 1     up 2
    """
    cdef Levels levels = steps.levels
    cdef Communicator low = levels.low
    cdef Typemap typemap = call.recv_type
    cdef Py_ssize_t extent = typemap.extent, count = call.recv_count, piece = count, begin = 0, before = -1, length
    cdef size_t own = own_address(call), result = call.recv_address
    cdef bint is_leader = levels.up is not None
    cdef Pipeline pipeline
    if 0 < segment < count * typemap.size:
        piece = max(segment // typemap.size, 1)
    if piece == count:
        reduce_low(steps, call, own, result, count)
        if is_leader:
            carry_out(levels.up, ALLREDUCE, among_leaders(steps, call, own, result, count))
        return steps.bcast(low, result, count, typemap, 0)
    pipeline = Pipeline.__new__(Pipeline)
    pipeline.level = levels.up
    while begin < count:
        length = min(piece, count - begin)
        reduce_low(steps, call, own + begin * extent, result + begin * extent, length)
        if is_leader:
            pipeline.begin(ALLREDUCE, among_leaders(steps, call, own + begin * extent, result + begin * extent, length))
        if before >= 0:
            if is_leader:
                pipeline.finish_first()
            steps.bcast(low, result + before * extent, piece, typemap, 0)
        before = begin
        begin += length
    pipeline.keep(0)
    return steps.bcast(low, result + before * extent, count - before, typemap, 0)
