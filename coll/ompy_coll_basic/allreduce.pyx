# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Allreduce (MPI-4.1, 6.9.6).  Every rank gets the same bits: each result is computed once, or in one order everywhere."""
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.scheduled_coll cimport own_address
from ompy_coll_basic.bcast cimport send_down_tree, send_to_each
from ompy_coll_basic.builder cimport builder
from ompy_coll_basic.reduce cimport reduce_in_turn, reduce_up_tree, take_in_at_once


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    reduce_in_turn(schedule, own_address(call), call.recv_address, call.recv_count, call.recv_type, call.operation, 0, comm)
    schedule.next_round()
    return send_to_each(schedule, call.recv_address, call.recv_count, call.recv_type, 0, comm)


cdef int logarithmic(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    reduce_up_tree(schedule, own_address(call), call.recv_address, call.recv_count, call.recv_type, call.operation, 0, comm)
    schedule.next_round()
    return send_down_tree(schedule, call.recv_address, call.recv_count, call.recv_type, 0, comm)


cdef int between_groups(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    """Each group gets the other's reduction: every rank takes it in for itself."""
    cdef int rank
    for rank in range(comm.remote_size):
        schedule.send(call.send_address, call.send_count, call.send_type, rank)
    return take_in_at_once(schedule, call.recv_address, call.recv_count, call.recv_type, call.operation, comm.remote_size)


BUILDERS = {
    ("allreduce", "linear"): builder(linear),
    ("allreduce", "logarithmic"): builder(logarithmic),
    ("allreduce inter", "linear"): builder(between_groups),
}
