# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Scatter and scatterv (MPI-4.1, 6.6)."""
from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport PROC_NULL, ROOT
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.coll_layout cimport Layout, address_of, copy_block, regular, send_block, sending
from ompy_coll_basic.builder cimport builder


cdef int from_root(Schedule schedule, CollectiveCall call, Communicator comm, bint vector) except -1:
    """Each rank's block straight from the root."""
    cdef Layout source, own
    cdef int rank
    if comm.rank != call.root:
        if not vector or call.recv_count * call.recv_type.size:
            schedule.recv(call.recv_address, call.recv_count, call.recv_type, call.root)
        return 0
    source = sending(call)
    for rank in range(comm.size):
        if rank != call.root:
            send_block(schedule, &source, rank, rank)
    if not call.recv_in_place:
        own = regular(call.recv_address, call.recv_count, call.recv_type)
        copy_block(schedule, &source, call.root, &own, 0)
    return 0


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return from_root(schedule, call, comm, False)


cdef int linear_vector(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return from_root(schedule, call, comm, True)


cdef int logarithmic(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    """Down a binomial tree, ranks counted from the root; each hands on the blocks of its children's subtrees.

        0 -> 4                                   four blocks, of places 4 5 6 7
        0 -> 2   4 -> 6                          two
        0 -> 1   2 -> 3   4 -> 5   6 -> 7        one
    """
    cdef int size = comm.size, root = call.root
    cdef int place = (comm.rank - root + size) % size
    cdef int subtree = size if place == 0 else min(place & -place, size - place)
    cdef int bit = 1
    cdef Layout source, blocks
    cdef Typemap typemap
    if place and subtree == 1:
        return schedule.recv(call.recv_address, call.recv_count, call.recv_type, (place - (place & -place) + root) % size)
    if place:
        blocks = regular(schedule.scratch(call.recv_count * subtree, call.recv_type), call.recv_count, call.recv_type)
        schedule.recv(blocks.address, subtree * call.recv_count, call.recv_type, (place - (place & -place) + root) % size)
        schedule.next_round()
    else:
        source = sending(call)
        blocks = source
        if root:
            # Rank order becomes place order: from the root on, then from rank 0.
            typemap = call.send_type
            blocks.address = schedule.scratch(call.send_count * size, typemap)
            schedule.copy(address_of(&source, root), (size - root) * call.send_count, typemap,
                          blocks.address, (size - root) * call.send_count, typemap)
            schedule.copy(source.address, root * call.send_count, typemap,
                          address_of(&blocks, size - root), root * call.send_count, typemap)
    while bit < subtree:
        bit <<= 1
    bit >>= 1
    while bit:
        schedule.send(address_of(&blocks, bit), min(bit, size - place - bit) * blocks.count, <Typemap> blocks.typemap,
                      (place + bit + root) % size)
        bit >>= 1
    if not call.recv_in_place:
        schedule.copy(blocks.address, blocks.count, <Typemap> blocks.typemap,
                      call.recv_address, call.recv_count, call.recv_type)
    return 0


cdef int across(Schedule schedule, CollectiveCall call, Communicator comm, bint vector) except -1:
    cdef Layout source
    cdef int rank
    if call.root == ROOT:
        source = sending(call)
        for rank in range(comm.remote_size):
            send_block(schedule, &source, rank, rank)
    elif call.root != PROC_NULL and (not vector or call.recv_count * call.recv_type.size):
        schedule.recv(call.recv_address, call.recv_count, call.recv_type, call.root)
    return 0


cdef int between_groups(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return across(schedule, call, comm, False)


cdef int vector_between_groups(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return across(schedule, call, comm, True)


BUILDERS = {
    ("scatter", "linear"): builder(linear),
    ("scatter", "logarithmic"): builder(logarithmic),
    ("scatterv", "linear"): builder(linear_vector),
    ("scatter inter", "linear"): builder(between_groups),
    ("scatterv inter", "linear"): builder(vector_between_groups),
}
