# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Barriers (MPI-4.1, 6.3): messages of no bytes."""
from ompy.core.basic cimport BASIC_BYTE
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap, predefined
from ompy.mca.coll cimport CollectiveCall
from ompy_coll_tuned.algorithm cimport Tuning, builder
from ompy_coll_tuned.halving cimport Folding, fold_ranks, old_rank, stands_for_two
from ompy_coll_tuned.tree cimport KNOMIAL, Tree, make_tree

cdef Typemap byte = predefined(BASIC_BYTE)


cdef int tree(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    """Up a k-nomial tree, then down."""
    cdef Tree tree = make_tree(KNOMIAL, tuning.fanout, 0, comm)
    cdef int child
    for child in range(tree.count):
        schedule.recv(0, 0, byte, tree.rank(tree.children[child]))
    schedule.next_round()
    if tree.parent >= 0:
        schedule.send(0, 0, byte, tree.rank(tree.parent))
        schedule.recv(0, 0, byte, tree.rank(tree.parent))
        schedule.next_round()
    for child in range(tree.count - 1, -1, -1):
        schedule.send(0, 0, byte, tree.rank(tree.children[child]))
    return 0


cdef int dissemination(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    """In round k each rank tells the one 2**k further, and hears from the one 2**k before (Hensgen, Finkel & Manber 1988)."""
    cdef int distance = 1
    while distance < comm.size:
        schedule.send(0, 0, byte, (comm.rank + distance) % comm.size)
        schedule.recv(0, 0, byte, (comm.rank - distance + comm.size) % comm.size)
        schedule.next_round()
        distance <<= 1
    return 0


cdef int recursive_doubling(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    """Partners 1, 2, 4, ... new ranks away tell each other."""
    cdef Folding folding = fold_ranks(comm)
    cdef int bit = 1, partner
    if folding.own < 0:
        schedule.send(0, 0, byte, comm.rank + 1)
        return schedule.recv(0, 0, byte, comm.rank + 1)
    if stands_for_two(&folding, comm.rank):
        schedule.recv(0, 0, byte, comm.rank - 1)
        schedule.next_round()
    while bit < folding.count:
        partner = old_rank(&folding, folding.own ^ bit)
        schedule.send(0, 0, byte, partner)
        schedule.recv(0, 0, byte, partner)
        schedule.next_round()
        bit <<= 1
    if stands_for_two(&folding, comm.rank):
        schedule.send(0, 0, byte, comm.rank - 1)
    return 0


BUILDERS = {
    ("barrier", "tree"): builder(tree),
    ("barrier", "dissemination"): builder(dissemination),
    ("barrier", "recursive_doubling"): builder(recursive_doubling),
}
