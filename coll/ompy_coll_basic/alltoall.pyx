# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Alltoall, alltoallv and alltoallw (MPI-4.1, 6.8): the three differ only in their layouts."""
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.coll_layout cimport Layout, copy_block, receiving, recv_block, send_block, sending
from ompy.mca.scheduled_coll cimport set_aside
from ompy_coll_basic.builder cimport builder


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    """All messages at once; each begins with the next rank, so that none is hit by all at once."""
    cdef Layout target = receiving(call)
    cdef Layout source = set_aside(schedule, &target, comm.size) if call.send_in_place else sending(call)
    cdef int step, size = comm.size
    for step in range(1, size):
        recv_block(schedule, &target, (comm.rank - step + size) % size, (comm.rank - step + size) % size)
    for step in range(1, size):
        send_block(schedule, &source, (comm.rank + step) % size, (comm.rank + step) % size)
    return 0 if call.send_in_place else copy_block(schedule, &source, comm.rank, &target, comm.rank)


cdef int between_groups(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    cdef Layout source = sending(call), target = receiving(call)
    cdef int rank
    for rank in range(comm.remote_size):
        recv_block(schedule, &target, rank, rank)
    for rank in range(comm.remote_size):
        send_block(schedule, &source, rank, rank)
    return 0


BUILDERS = {
    ("alltoall", "linear"): builder(linear),
    ("alltoallv", "linear"): builder(linear),
    ("alltoallw", "linear"): builder(linear),
    ("alltoall inter", "linear"): builder(between_groups),
    ("alltoallv inter", "linear"): builder(between_groups),
    ("alltoallw inter", "linear"): builder(between_groups),
}
