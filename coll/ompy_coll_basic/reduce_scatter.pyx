# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Reduce_scatter and reduce_scatter_block (MPI-4.1, 6.10)."""
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.coll_layout cimport before, part
from ompy.mca.scheduled_coll cimport own_address
from ompy_coll_basic.builder cimport builder
from ompy_coll_basic.reduce cimport reduce_in_turn, reduce_up_tree, take_in_at_once


cdef int by_root(Schedule schedule, CollectiveCall call, Communicator comm, bint tree) except -1:
    """All of it reduced on rank 0, which hands out the parts."""
    cdef Py_ssize_t total = before(call, comm.size), extent = call.recv_type.extent, own = part(call, comm.rank)
    cdef size_t result = schedule.scratch(total, call.recv_type) if comm.rank == 0 else 0
    cdef int rank
    if tree:
        reduce_up_tree(schedule, own_address(call), result, total, call.recv_type, call.operation, 0, comm)
    else:
        reduce_in_turn(schedule, own_address(call), result, total, call.recv_type, call.operation, 0, comm)
    schedule.next_round()
    if comm.rank:
        return schedule.recv(call.recv_address, own, call.recv_type, 0) if own or call.recv_counts == NULL else 0
    schedule.copy(result, own, call.recv_type, call.recv_address, own, call.recv_type)
    for rank in range(1, comm.size):
        result += <size_t> (part(call, rank - 1) * extent)
        if part(call, rank) or call.recv_counts == NULL:
            schedule.send(result, part(call, rank), call.recv_type, rank)
    return 0


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return by_root(schedule, call, comm, False)


cdef int logarithmic(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return by_root(schedule, call, comm, True)


cdef int block_between_groups(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    """The other group's ranks get equal parts of this one's data."""
    cdef Py_ssize_t share = call.recv_count * comm.size // comm.remote_size
    cdef int rank
    for rank in range(comm.remote_size):
        schedule.send(call.send_address + rank * share * call.recv_type.extent, share, call.recv_type, rank)
    return take_in_at_once(schedule, call.recv_address, call.recv_count, call.recv_type, call.operation, comm.remote_size)


cdef int between_groups(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    """How the other group shares out this one's data is known only there, so all of it is sent to every rank."""
    cdef Py_ssize_t total = before(call, comm.size), own = part(call, comm.rank)
    cdef size_t result = schedule.scratch(total, call.recv_type)
    cdef int rank
    for rank in range(comm.remote_size):
        schedule.send(call.send_address, total, call.recv_type, rank)
    take_in_at_once(schedule, result, total, call.recv_type, call.operation, comm.remote_size)
    schedule.next_round()
    return schedule.copy(result + before(call, comm.rank) * call.recv_type.extent, own, call.recv_type,
                         call.recv_address, own, call.recv_type)


BUILDERS = {
    ("reduce_scatter_block", "linear"): builder(linear),
    ("reduce_scatter_block", "logarithmic"): builder(logarithmic),
    ("reduce_scatter", "linear"): builder(linear),
    ("reduce_scatter", "logarithmic"): builder(logarithmic),
    ("reduce_scatter_block inter", "linear"): builder(block_between_groups),
    ("reduce_scatter inter", "linear"): builder(between_groups),
}
