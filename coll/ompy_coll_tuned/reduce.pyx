# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Reduce (MPI-4.1, 6.9.1).  Every algorithm reduces in one order, whatever arrives first, so results are reproducible."""
from ompy.core.communicator cimport Communicator
from ompy.core.operation cimport Operation
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.scheduled_coll cimport first_of, own_address, own_count, own_type
from ompy_coll_tuned.algorithm cimport Tuning, builder
from ompy_coll_tuned.halving cimport Folding, fold_ranks, make_starts, new_rank, old_rank, reduce_halves
from ompy_coll_tuned.tree cimport BINARY, CHAIN, KNOMIAL, LINEAR, Shape, Tree, make_tree

cdef enum:
    AT_ONCE = 16384                              # bytes of all children's contributions that are received in one round


# What one place of a tree takes in: the pieces of its children, one child after the other for each piece.
#
#     2 pieces, 2 children      round 0   receive 0 of a
#                               round 1   receive 0 of b    reduce 0 of a
#                               round 2   receive 1 of a    reduce 0 of b    send 0 to the parent
#
# The left operand is what has been gathered, the right one what comes; the result lies where that came to.  An operation
# that commutes may as well leave it where it was: then a piece stays at one place, and two spare ones take turns.
cdef struct Gathering:
    size_t own, gathered
    size_t spare[2]
    bint commutative


cdef inline size_t place(Gathering *taken, int child, Py_ssize_t offset, Py_ssize_t turn) noexcept:
    """Where a child's piece is received, `offset` bytes into the message; `turn` counts all of them."""
    if taken.gathered == taken.own:
        return taken.spare[turn & 1]
    if taken.commutative:
        return taken.spare[(child - 1) & 1] if child else taken.gathered + offset
    return taken.spare[child % 3 - 1] if child % 3 else taken.gathered + offset


cdef int send_pieces(Schedule schedule, size_t data, Py_ssize_t count, Py_ssize_t step, Typemap typemap, int peer) except -1:
    cdef Py_ssize_t first = 0
    while first < count or first == 0:
        schedule.send(data + first * typemap.extent, min(step, count - first), typemap, peer)
        schedule.next_round()
        first += step
    return 0


cdef int gather_at_once(Schedule schedule, size_t own, size_t result, Py_ssize_t count, Typemap typemap, Operation operation,
                        Tree tree) except -1:
    """Contributions so short that there is room for all children's at once: one wait for all of them."""
    cdef Py_ssize_t step = count * typemap.extent
    cdef size_t arrived = schedule.scratch(count * tree.count, typemap), current = own
    cdef int child
    for child in range(tree.count):
        schedule.recv(arrived + child * step, count, typemap, tree.rank(tree.children[child]))
    schedule.next_round()
    for child in range(tree.count):
        schedule.reduce(current, arrived + child * step, count, typemap, operation)
        current = arrived + child * step
    if tree.parent >= 0:
        return schedule.send(current, count, typemap, tree.rank(tree.parent))
    return schedule.copy(current, count, typemap, result, count, typemap)


cdef int gather_up(Schedule schedule, size_t own, size_t result, Py_ssize_t count, Py_ssize_t step, Typemap typemap,
                   Operation operation, Tree tree) except -1:
    """This rank's part of a reduction up a tree, in pieces of `step` elements."""
    cdef Gathering taken
    cdef Py_ssize_t extent = typemap.extent, first = 0, following, turn = 0
    cdef int child = 0, next_child
    cdef size_t current = 0, arrived
    cdef bint top = tree.parent < 0
    if not tree.count:
        if not top:
            return send_pieces(schedule, own, count, step, typemap, tree.rank(tree.parent))
        return schedule.copy(own, count, typemap, result, count, typemap) if own != result else 0
    if step >= count and tree.count * count * typemap.size <= AT_ONCE:
        return gather_at_once(schedule, own, result, count, typemap, operation, tree)
    taken.own = own
    taken.commutative = operation.commutative
    taken.gathered = result if top and (own != result or operation.commutative) else schedule.scratch(count, typemap)
    if tree.count > 1 or taken.gathered == own:
        taken.spare[0] = schedule.scratch(step, typemap)
        taken.spare[1] = schedule.scratch(step, typemap)
    schedule.recv(place(&taken, 0, 0, 0), min(step, count), typemap, tree.rank(tree.children[0]))
    while True:
        schedule.next_round()
        next_child = (child + 1) % tree.count
        following = first if next_child else first + step
        if following < count or next_child:
            schedule.recv(place(&taken, next_child, following * extent, turn + 1), min(step, count - following), typemap,
                          tree.rank(tree.children[next_child]))
        arrived = place(&taken, child, first * extent, turn)
        if child == 0:
            current = own + first * extent
        if taken.gathered == own or (taken.commutative and child):
            schedule.reduce(arrived, current, min(step, count - first), typemap, operation)
        else:
            schedule.reduce(current, arrived, min(step, count - first), typemap, operation)
            current = arrived
        if next_child == 0:
            if not top:
                schedule.send(current, min(step, count - first), typemap, tree.rank(tree.parent))
            elif current != result + first * extent:
                schedule.copy(current, min(step, count - first), typemap, result + first * extent, min(step, count - first),
                              typemap)
            if following >= count:
                return 0
        first = following
        child = next_child
        turn += 1


cdef int reduce_up(Schedule schedule, size_t own, size_t result, Py_ssize_t count, Typemap typemap, Operation operation,
                   int root, Shape shape, int fanout, Py_ssize_t segment, Communicator comm) except -1:
    # In the order of ranks only from rank 0; its result then goes to the root.
    cdef int top = root if operation.commutative else 0
    cdef Py_ssize_t step = count if segment <= 0 else max(segment // max(typemap.size, 1), 1)
    cdef size_t target = result
    if top != root and comm.rank == top:
        target = schedule.scratch(count, typemap)
    gather_up(schedule, own, target, count, max(min(step, count), 1), typemap, operation, make_tree(shape, fanout, top, comm))
    if top != root and comm.rank == top:
        schedule.next_round()
        return schedule.send(target, count, typemap, root)
    if top != root and comm.rank == root:
        schedule.next_round()
        return schedule.recv(result, count, typemap, top)
    return 0


cdef inline int up(Schedule schedule, CollectiveCall call, Shape shape, int fanout, Py_ssize_t segment,
                   Communicator comm) except -1:
    return reduce_up(schedule, own_address(call), call.recv_address, own_count(call), own_type(call), call.operation,
                     call.root, shape, fanout, segment, comm)


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return up(schedule, call, LINEAR, 0, 0, comm)


cdef int chain(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return up(schedule, call, CHAIN, tuning.fanout, tuning.segment, comm)


cdef int pipeline(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return up(schedule, call, CHAIN, 1, tuning.segment, comm)


cdef int binary(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return up(schedule, call, BINARY, 2, tuning.segment, comm)


cdef int binomial(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return up(schedule, call, KNOMIAL, 2, tuning.segment, comm)


cdef int knomial(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return up(schedule, call, KNOMIAL, tuning.fanout, tuning.segment, comm)


cdef int rabenseifner(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    """A reduce_scatter by recursive halving, then a gather: the parts go to the root's new rank the way the halves came.

        4 new ranks, root's 2      3 -> 2, 1 -> 0 one part      0 -> 2 two parts
    """
    cdef Folding folding = fold_ranks(comm)
    cdef Py_ssize_t *starts = make_starts(schedule, &folding)
    cdef Typemap typemap = own_type(call)
    cdef Py_ssize_t count = own_count(call)
    cdef int home = new_rank(&folding, call.root), bit = 1, part, other
    cdef int host = old_rank(&folding, home)
    cdef size_t own = own_address(call), gathered
    for part in range(folding.count + 1):
        starts[part] = first_of(count, part, folding.count)
    gathered = call.recv_address if comm.rank == call.root else schedule.scratch(count, typemap)
    reduce_halves(schedule, &folding, own, gathered, starts, typemap, call.operation, comm)
    while bit < folding.count and folding.own >= 0:
        # Those still in it are the new ranks that differ from the root's in no lower bit.
        schedule.next_round()
        part = folding.own & ~(bit - 1)
        other = part ^ bit
        if (folding.own ^ home) & bit:
            schedule.send(gathered + starts[part] * typemap.extent, starts[part + bit] - starts[part], typemap,
                          old_rank(&folding, folding.own ^ bit))
            break
        schedule.recv(gathered + starts[other] * typemap.extent, starts[other + bit] - starts[other], typemap,
                      old_rank(&folding, folding.own ^ bit))
        bit <<= 1
    if host != call.root:
        # The next rank stands for the root.
        schedule.next_round()
        if comm.rank == host:
            schedule.send(gathered, count, typemap, call.root)
        elif comm.rank == call.root:
            schedule.recv(call.recv_address, count, typemap, host)
    return 0


BUILDERS = {
    ("reduce", "linear"): builder(linear),
    ("reduce", "chain"): builder(chain),
    ("reduce", "pipeline"): builder(pipeline),
    ("reduce", "binary"): builder(binary),
    ("reduce", "binomial"): builder(binomial),
    ("reduce", "knomial"): builder(knomial),
    ("reduce", "rabenseifner"): builder(rabenseifner),
}
