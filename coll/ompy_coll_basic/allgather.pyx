# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Allgather and allgatherv (MPI-4.1, 6.7)."""
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.coll_layout cimport Layout, copy_block, receiving, recv_block, regular, send_block
from ompy_coll_basic.bcast cimport send_down_tree
from ompy_coll_basic.builder cimport builder
from ompy_coll_basic.gather cimport gather_up_tree


cdef int copy_own(Schedule schedule, CollectiveCall call, Layout *target, Communicator comm) except -1:
    cdef Layout own
    if call.send_in_place:
        return 0
    own = regular(call.send_address, call.send_count, call.send_type)
    return copy_block(schedule, &own, 0, target, comm.rank)


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    """Every rank's block straight to every other; each begins with the next rank, so that none is hit by all at once."""
    cdef Layout target = receiving(call)
    cdef int step, size = comm.size
    copy_own(schedule, call, &target, comm)
    for step in range(1, size):
        recv_block(schedule, &target, (comm.rank - step + size) % size, (comm.rank - step + size) % size)
    for step in range(1, size):
        send_block(schedule, &target, comm.rank, (comm.rank + step) % size)
    return 0


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
