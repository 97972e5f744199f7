# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Scatter (MPI-4.1, 6.6): down a tree, each of whose places gets a run of blocks, those of its subtree."""
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.coll_layout cimport Layout, address_of, regular, sending, type_of
from ompy_coll_tuned.algorithm cimport Tuning, builder
from ompy_coll_tuned.tree cimport KNOMIAL, LINEAR, Tree, make_tree


cdef int scatter_down(Schedule schedule, CollectiveCall call, Tree tree, Communicator comm) except -1:
    """Blocks are sent in the order of places; the root turns those of ranks into it."""
    cdef int size = comm.size, child, span
    cdef Layout source, blocks
    cdef bint by_rank
    if tree.parent >= 0 and not tree.count:
        return schedule.recv(call.recv_address, call.recv_count, call.recv_type, tree.rank(tree.parent))
    if tree.parent >= 0:
        span = tree.end - tree.place
        blocks = regular(schedule.scratch(call.recv_count * span, call.recv_type), call.recv_count, call.recv_type)
        schedule.recv(blocks.address, span * blocks.count, call.recv_type, tree.rank(tree.parent))
        schedule.next_round()
        by_rank = False
    else:
        source = sending(call)
        blocks = source
        by_rank = not tree.top or tree.count == size - 1
        if not by_rank:
            blocks.address = schedule.scratch(call.send_count * size, call.send_type)
            schedule.copy(address_of(&source, tree.top), (size - tree.top) * blocks.count, call.send_type,
                          blocks.address, (size - tree.top) * blocks.count, call.send_type)
            schedule.copy(source.address, tree.top * blocks.count, call.send_type,
                          address_of(&blocks, size - tree.top), tree.top * blocks.count, call.send_type)
    for child in range(tree.count - 1, -1, -1):
        span = tree.child_end(child) - tree.children[child]
        schedule.send(address_of(&blocks, tree.rank(tree.children[child]) if by_rank else tree.children[child] - tree.place),
                      span * blocks.count, type_of(&blocks, 0), tree.rank(tree.children[child]))
    if not call.recv_in_place:
        schedule.copy(address_of(&blocks, comm.rank if by_rank else 0), blocks.count, type_of(&blocks, 0), call.recv_address,
                      call.recv_count, call.recv_type)
    return 0


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return scatter_down(schedule, call, make_tree(LINEAR, 0, call.root, comm), comm)


cdef int binomial(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return scatter_down(schedule, call, make_tree(KNOMIAL, 2, call.root, comm), comm)


BUILDERS = {
    ("scatter", "linear"): builder(linear),
    ("scatter", "binomial"): builder(binomial),
}
