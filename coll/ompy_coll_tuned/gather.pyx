# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Gather (MPI-4.1, 6.5): up a tree, whose places each have a run of blocks to send on, those of their subtree."""
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.coll_layout cimport Layout, address_of, receiving, regular, type_of
from ompy_coll_tuned.algorithm cimport Tuning, builder
from ompy_coll_tuned.tree cimport KNOMIAL, LINEAR, Tree, make_tree


cdef int gather_up(Schedule schedule, CollectiveCall call, Tree tree, Communicator comm) except -1:
    """Blocks are received in the order of places; the root turns them into that of ranks."""
    cdef bint top = tree.parent < 0
    cdef int size = comm.size, child, span
    cdef Layout target, blocks
    if not top and not tree.count:
        return schedule.send(call.send_address, call.send_count, call.send_type, tree.rank(tree.parent))
    if top:
        target = receiving(call)
        blocks = target
        if tree.top and tree.count < size - 1:
            blocks.address = schedule.scratch(call.recv_count * size, call.recv_type)
    else:
        blocks = regular(schedule.scratch(call.send_count * (tree.end - tree.place), call.send_type), call.send_count,
                         call.send_type)
    for child in range(tree.count):
        span = tree.child_end(child) - tree.children[child]
        schedule.recv(address_of(&blocks, slot(tree, tree.children[child], top and blocks.address == target.address)),
                      span * blocks.count, type_of(&blocks, 0), tree.rank(tree.children[child]))
    if not top:
        schedule.copy(call.send_address, call.send_count, call.send_type, blocks.address, blocks.count, type_of(&blocks, 0))
        schedule.next_round()
        return schedule.send(blocks.address, (tree.end - tree.place) * blocks.count, type_of(&blocks, 0),
                             tree.rank(tree.parent))
    if not call.send_in_place:
        schedule.copy(call.send_address, call.send_count, call.send_type, address_of(&target, comm.rank), call.recv_count,
                      call.recv_type)
    if blocks.address != target.address:
        schedule.next_round()
        schedule.copy(address_of(&blocks, 1), (size - tree.top - 1) * blocks.count, call.recv_type,
                      address_of(&target, tree.top + 1), (size - tree.top - 1) * blocks.count, call.recv_type)
        schedule.copy(address_of(&blocks, size - tree.top), tree.top * blocks.count, call.recv_type,
                      target.address, tree.top * blocks.count, call.recv_type)
    return 0


cdef inline int slot(Tree tree, int place, bint by_rank) noexcept:
    """Which block a place's is: where ranks are in order, that of its rank; else counted from this place."""
    return tree.rank(place) if by_rank else place - tree.place


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return gather_up(schedule, call, make_tree(LINEAR, 0, call.root, comm), comm)


cdef int binomial(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return gather_up(schedule, call, make_tree(KNOMIAL, 2, call.root, comm), comm)


BUILDERS = {
    ("gather", "linear"): builder(linear),
    ("gather", "binomial"): builder(binomial),
}
