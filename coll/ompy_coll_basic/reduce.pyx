# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Reduce (MPI-4.1, 6.9.1).

Every algorithm reduces in one order, whatever arrives first, so results are reproducible; operations that don't commute
get their operands in rank order.
"""
from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport PROC_NULL, ROOT
from ompy.core.operation cimport Operation
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.scheduled_coll cimport own_address, own_count, own_type
from ompy_coll_basic.builder cimport builder


cdef int take_in(Schedule schedule, size_t own, int local, size_t result, Py_ssize_t count, Typemap typemap,
                 Operation operation, int size) except -1:
    """From the last rank down, since the lower rank's operand is the left one; the next is received meanwhile.

        result = x3      x2 op result      x1 op result      x0 op result
                  recv 2          recv 1           recv 0
    """
    cdef size_t buffers[2]
    cdef int rank = size - 1
    if own == result and local != rank and local >= 0:
        own = schedule.scratch(count, typemap)
        schedule.copy(result, count, typemap, own, count, typemap)
    if rank != local:
        schedule.recv(result, count, typemap, rank)
    elif own != result:
        schedule.copy(own, count, typemap, result, count, typemap)
    if size > 1:
        buffers[0] = schedule.scratch(count, typemap)
        buffers[1] = schedule.scratch(count, typemap) if size > 2 else buffers[0]
        if rank - 1 != local:
            schedule.recv(buffers[(rank - 1) & 1], count, typemap, rank - 1)
    for rank in range(size - 2, -1, -1):
        schedule.next_round()
        if rank > 0 and rank - 1 != local:
            schedule.recv(buffers[(rank - 1) & 1], count, typemap, rank - 1)
        schedule.reduce(own if rank == local else buffers[rank & 1], result, count, typemap, operation)
    return 0


cdef int take_in_at_once(Schedule schedule, size_t result, Py_ssize_t count, Typemap typemap, Operation operation,
                         int size) except -1:
    cdef size_t operands = schedule.scratch(count * (size - 1), typemap)
    cdef int rank
    schedule.recv(result, count, typemap, size - 1)
    for rank in range(size - 1):
        schedule.recv(operands + rank * count * typemap.extent, count, typemap, rank)
    schedule.next_round()
    for rank in range(size - 2, -1, -1):
        schedule.reduce(operands + rank * count * typemap.extent, result, count, typemap, operation)
    return 0


cdef int reduce_in_turn(Schedule schedule, size_t own, size_t result, Py_ssize_t count, Typemap typemap,
                        Operation operation, int root, Communicator comm) except -1:
    if comm.rank != root:
        return schedule.send(own, count, typemap, root)
    return take_in(schedule, own, root, result, count, typemap, operation, comm.size)


cdef int reduce_up_tree(Schedule schedule, size_t own, size_t result, Py_ssize_t count, Typemap typemap,
                        Operation operation, int root, Communicator comm) except -1:
    """Up a binomial tree, places counted from the root when the operation commutes, else from rank 0.

        place 0     x0 . x1      (x0x1) . (x2x3)      (x0..x3) . (x4..x7)
              2     x2 . x3      sent to 0
              4     x4 . x5      (x4x5) . (x6x7)      sent to 0

    The left operand is what has been gathered here, the right one what a child sends, in whose buffer the result then
    lies; three buffers in turn hold the two and what the next child sends.  The last child's message is received where
    the result is wanted.
    """
    cdef int size = comm.size
    cdef int top = root if operation.commutative else 0
    cdef int place = (comm.rank - top + size) % size
    cdef int bit = 1, children = 0, child
    cdef size_t gathered = own
    cdef size_t buffers[32]
    while not place & bit and place + bit < size:
        bit <<= 1
        children += 1
    for child in range(children):
        # `result` must not be what is still to be read when that message comes.
        if child == children - 1 and place == 0 and top == root and (own != result or children > 2):
            buffers[child] = result
        else:
            buffers[child] = buffers[child - 3] if child > 2 else schedule.scratch(count, typemap)
    if children:
        schedule.recv(buffers[0], count, typemap, (place + 1 + top) % size)
    for child in range(children):
        schedule.next_round()
        if child + 1 < children:
            schedule.recv(buffers[child + 1], count, typemap, (place + (2 << child) + top) % size)
        schedule.reduce(gathered, buffers[child], count, typemap, operation)
        gathered = buffers[child]
    if place:
        schedule.send(gathered, count, typemap, (place - (place & -place) + top) % size)
    elif top != root:
        schedule.send(gathered, count, typemap, root)
    elif gathered != result:
        schedule.copy(gathered, count, typemap, result, count, typemap)
    if comm.rank == root and top != root:
        schedule.next_round()
        schedule.recv(result, count, typemap, top)
    return 0


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return reduce_in_turn(schedule, own_address(call), call.recv_address, own_count(call), own_type(call), call.operation,
                          call.root, comm)


cdef int logarithmic(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return reduce_up_tree(schedule, own_address(call), call.recv_address, own_count(call), own_type(call), call.operation,
                          call.root, comm)


cdef int between_groups(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    if call.root == ROOT:
        return take_in(schedule, 0, -1, call.recv_address, call.recv_count, call.recv_type, call.operation,
                       comm.remote_size)
    if call.root != PROC_NULL:
        schedule.send(call.send_address, call.send_count, call.send_type, call.root)
    return 0


BUILDERS = {
    ("reduce", "linear"): builder(linear),
    ("reduce", "logarithmic"): builder(logarithmic),
    ("reduce inter", "linear"): builder(between_groups),
}
