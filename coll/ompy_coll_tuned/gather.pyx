# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Gather (MPI-4.1, 6.5): up a tree, whose places each have a run of blocks to send on, those of their subtree."""
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.coll_layout cimport Layout, address_of, receiving, regular, type_of
from ompy_coll_tuned.algorithm cimport Tuning, builder
from ompy_coll_tuned.tree cimport KNOMIAL, LINEAR, Tree, make_tree


cdef int gather_up(Schedule schedule, size_t own, Py_ssize_t count, Typemap typemap, bint in_place, Layout *target, Tree tree,
                   Communicator comm) except -1:
    """Blocks are received in the order of places; the top turns them into that of ranks."""
    cdef bint top = tree.parent < 0
    # In the order of ranks at once where nothing is sent on, and every place is one block or its rank.
    cdef bint by_rank = top and (not tree.top or tree.count == tree.size - 1)
    cdef int size = tree.size, child, span
    cdef Layout blocks
    if not top and not tree.count:
        return schedule.send(own, count, typemap, tree.rank(tree.parent))
    if top:
        blocks = target[0]
        if not by_rank:
            blocks.address = schedule.scratch(target.count * size, type_of(target, 0))
    else:
        blocks = regular(schedule.scratch(count * (tree.end - tree.place), typemap), count, typemap)
    for child in range(tree.count):
        span = tree.child_end(child) - tree.children[child]
        schedule.recv(address_of(&blocks, tree.rank(tree.children[child]) if by_rank else tree.children[child] - tree.place),
                      span * blocks.count, type_of(&blocks, 0), tree.rank(tree.children[child]))
    if not top:
        schedule.copy(own, count, typemap, blocks.address, count, typemap)
        schedule.next_round()
        return schedule.send(blocks.address, (tree.end - tree.place) * count, typemap, tree.rank(tree.parent))
    if not in_place:
        schedule.copy(own, count, typemap, address_of(target, comm.rank), target.count, type_of(target, 0))
    if not by_rank:
        schedule.next_round()
        schedule.copy(address_of(&blocks, 1), (size - tree.top - 1) * blocks.count, type_of(target, 0),
                      address_of(target, tree.top + 1), (size - tree.top - 1) * blocks.count, type_of(target, 0))
        schedule.copy(address_of(&blocks, size - tree.top), tree.top * blocks.count, type_of(target, 0),
                      target.address, tree.top * blocks.count, type_of(target, 0))
    return 0


cdef inline int to_root(Schedule schedule, CollectiveCall call, Tree tree, Communicator comm) except -1:
    cdef Layout target = receiving(call)
    return gather_up(schedule, call.send_address, call.send_count, call.send_type, call.send_in_place, &target, tree, comm)


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return to_root(schedule, call, make_tree(LINEAR, 0, call.root, comm), comm)


cdef int binomial(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return to_root(schedule, call, make_tree(KNOMIAL, 2, call.root, comm), comm)


BUILDERS = {
    ("gather", "linear"): builder(linear),
    ("gather", "binomial"): builder(binomial),
}
