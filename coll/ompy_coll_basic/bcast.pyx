# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Broadcast (MPI-4.1, 6.4)."""
from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport PROC_NULL, ROOT
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap
from ompy.mca.coll cimport CollectiveCall
from ompy_coll_basic.builder cimport builder


cdef int send_to_each(Schedule schedule, size_t address, Py_ssize_t count, Typemap typemap, int root,
                      Communicator comm) except -1:
    cdef int rank
    if comm.rank != root:
        return schedule.recv(address, count, typemap, root)
    for rank in range(comm.size):
        if rank != root:
            schedule.send(address, count, typemap, rank)
    return 0


cdef int send_down_tree(Schedule schedule, size_t address, Py_ssize_t count, Typemap typemap, int root,
                        Communicator comm) except -1:
    """Down a binomial tree, ranks counted from the root; the largest subtree first.

        0 -> 4 -> 6 -> 7       who has the data after each round, of 8:   0 | 0 4 | 0 2 4 6 | 0 to 7
        0 -> 2 -> 3   4 -> 5
        0 -> 1
    """
    cdef int size = comm.size
    cdef int place = (comm.rank - root + size) % size
    cdef int bit = 1
    while bit < size and not place & bit:
        bit <<= 1
    if place:
        schedule.recv(address, count, typemap, (place - bit + root) % size)
        schedule.next_round()
    bit >>= 1
    while bit:
        if place + bit < size:
            schedule.send(address, count, typemap, (place + bit + root) % size)
        bit >>= 1
    return 0


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return send_to_each(schedule, call.send_address, call.send_count, call.send_type, call.root, comm)


cdef int logarithmic(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return send_down_tree(schedule, call.send_address, call.send_count, call.send_type, call.root, comm)


cdef int between_groups(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    cdef int rank
    if call.root == ROOT:
        for rank in range(comm.remote_size):
            schedule.send(call.send_address, call.send_count, call.send_type, rank)
    elif call.root != PROC_NULL:
        schedule.recv(call.send_address, call.send_count, call.send_type, call.root)
    return 0


BUILDERS = {
    ("bcast", "linear"): builder(linear),
    ("bcast", "logarithmic"): builder(logarithmic),
    ("bcast inter", "linear"): builder(between_groups),
}
