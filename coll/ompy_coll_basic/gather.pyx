# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Gather and gatherv (MPI-4.1, 6.5)."""
from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport PROC_NULL, ROOT
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.coll_layout cimport Layout, address_of, copy_block, receiving, recv_block, regular
from ompy_coll_basic.builder cimport builder


cdef int to_root(Schedule schedule, CollectiveCall call, Communicator comm, bint vector) except -1:
    """Each rank's block straight to the root."""
    cdef Layout source = regular(call.send_address, call.send_count, call.send_type)
    cdef Layout target
    cdef int rank
    if comm.rank != call.root:
        if not vector or call.send_count * call.send_type.size:
            schedule.send(call.send_address, call.send_count, call.send_type, call.root)
        return 0
    target = receiving(call)
    for rank in range(comm.size):
        if rank != call.root:
            recv_block(schedule, &target, rank, rank)
        elif not call.send_in_place:
            copy_block(schedule, &source, 0, &target, rank)
    return 0


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return to_root(schedule, call, comm, False)


cdef int linear_vector(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return to_root(schedule, call, comm, True)


cdef int gather_up_tree(Schedule schedule, CollectiveCall call, int root, Communicator comm) except -1:
    """Up a binomial tree, ranks counted from the root; each sends on the blocks of its whole subtree at once.

        1 -> 0   3 -> 2   5 -> 4   7 -> 6        one block each
        2 -> 0            6 -> 4                 two
        4 -> 0                                   four, at consecutive places: 4 5 6 7
    """
    cdef int size = comm.size
    cdef int place = (comm.rank - root + size) % size
    cdef int subtree = size if place == 0 else min(place & -place, size - place)
    cdef int bit = 1, span
    cdef Layout blocks, target
    cdef Typemap typemap
    cdef Py_ssize_t count
    if place and subtree == 1:
        if call.send_in_place:
            target = receiving(call)
            return schedule.send(address_of(&target, comm.rank), call.recv_count, call.recv_type,
                                 root_parent(place, root, size))
        return schedule.send(call.send_address, call.send_count, call.send_type, root_parent(place, root, size))
    target = receiving(call)
    if place == 0 and root == 0:
        # Places are ranks: the blocks are received where they belong.
        blocks = target
    else:
        count, typemap = (call.recv_count, call.recv_type) if place == 0 else (call.send_count, call.send_type)
        if call.send_in_place:
            count, typemap = call.recv_count, call.recv_type
        blocks = regular(schedule.scratch(count * subtree, typemap), count, typemap)
    if call.send_in_place:
        if blocks.address != target.address:
            copy_block(schedule, &target, comm.rank, &blocks, 0)
    else:
        schedule.copy(call.send_address, call.send_count, call.send_type, address_of(&blocks, 0), blocks.count,
                      <Typemap> blocks.typemap)
    while bit < subtree:
        span = min(bit, size - place - bit)
        schedule.recv(address_of(&blocks, bit), span * blocks.count, <Typemap> blocks.typemap, (place + bit + root) % size)
        bit <<= 1
    schedule.next_round()
    if place:
        schedule.send(blocks.address, subtree * blocks.count, <Typemap> blocks.typemap, root_parent(place, root, size))
    elif root:
        # place 0 .. size-root-1 are the ranks from the root on, the others wrap round to rank 0.
        schedule.copy(blocks.address, (size - root) * blocks.count, call.recv_type,
                      address_of(&target, root), (size - root) * blocks.count, call.recv_type)
        schedule.copy(address_of(&blocks, size - root), root * blocks.count, call.recv_type,
                      target.address, root * blocks.count, call.recv_type)
    return 0


cdef inline int root_parent(int place, int root, int size) noexcept:
    return (place - (place & -place) + root) % size


cdef int logarithmic(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return gather_up_tree(schedule, call, call.root, comm)


cdef int across(Schedule schedule, CollectiveCall call, Communicator comm, bint vector) except -1:
    cdef Layout target
    cdef int rank
    if call.root == ROOT:
        target = receiving(call)
        for rank in range(comm.remote_size):
            recv_block(schedule, &target, rank, rank)
    elif call.root != PROC_NULL and (not vector or call.send_count * call.send_type.size):
        schedule.send(call.send_address, call.send_count, call.send_type, call.root)
    return 0


cdef int between_groups(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return across(schedule, call, comm, False)


cdef int vector_between_groups(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return across(schedule, call, comm, True)


BUILDERS = {
    ("gather", "linear"): builder(linear),
    ("gather", "logarithmic"): builder(logarithmic),
    ("gatherv", "linear"): builder(linear_vector),
    ("gather inter", "linear"): builder(between_groups),
    ("gatherv inter", "linear"): builder(vector_between_groups),
}
