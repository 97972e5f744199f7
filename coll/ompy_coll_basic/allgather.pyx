# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Allgather and allgatherv (MPI-4.1, 6.7)."""
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.coll_layout cimport Layout, allgather_straight, receiving, recv_block
from ompy_coll_basic.bcast cimport send_down_tree
from ompy_coll_basic.builder cimport builder
from ompy_coll_basic.gather cimport gather_up_tree


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return allgather_straight(schedule, call, comm)


cdef int logarithmic(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    gather_up_tree(schedule, call, 0, comm)
    schedule.next_round()
    return send_down_tree(schedule, call.recv_address, call.recv_count * comm.size, call.recv_type, 0, comm)


cdef int across(Schedule schedule, CollectiveCall call, Communicator comm, bint vector) except -1:
    cdef Layout target = receiving(call)
    cdef int rank
    for rank in range(comm.remote_size):
        recv_block(schedule, &target, rank, rank)
    for rank in range(comm.remote_size):
        if not vector or call.send_count * call.send_type.size:
            schedule.send(call.send_address, call.send_count, call.send_type, rank)
    return 0


cdef int between_groups(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return across(schedule, call, comm, False)


cdef int vector_between_groups(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return across(schedule, call, comm, True)


BUILDERS = {
    ("allgather", "linear"): builder(linear),
    ("allgather", "logarithmic"): builder(logarithmic),
    ("allgatherv", "linear"): builder(linear),
    ("allgather inter", "linear"): builder(between_groups),
    ("allgatherv inter", "linear"): builder(vector_between_groups),
}
