# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Reduce_scatter and reduce_scatter_block (MPI-4.1, 6.10)."""
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.coll_layout cimport before, part
from ompy.mca.scheduled_coll cimport own_address
from ompy_coll_tuned.algorithm cimport Tuning, builder
from ompy_coll_tuned.halving cimport (
    Folding, fold_ranks, make_starts, old_rank, reduce_by_doubling, reduce_halves, stands_for_two,
)
from ompy_coll_tuned.reduce cimport reduce_up
from ompy_coll_tuned.tree cimport KNOMIAL, LINEAR, Shape


cdef int by_root(Schedule schedule, CollectiveCall call, Communicator comm, Shape shape) except -1:
    """All of it reduced on rank 0 up a tree, then each part straight to its rank."""
    cdef Py_ssize_t total = before(call, comm.size), own = part(call, comm.rank)
    cdef size_t result = schedule.scratch(total, call.recv_type) if comm.rank == 0 else 0
    cdef int rank
    reduce_up(schedule, own_address(call), result, total, call.recv_type, call.operation, 0, shape, 2, 0, comm)
    schedule.next_round()
    if comm.rank:
        return schedule.recv(call.recv_address, own, call.recv_type, 0)
    schedule.copy(result, own, call.recv_type, call.recv_address, own, call.recv_type)
    for rank in range(1, comm.size):
        schedule.send(result + before(call, rank) * call.recv_type.extent, part(call, rank), call.recv_type, rank)
    return 0


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return by_root(schedule, call, comm, LINEAR)


cdef int nonoverlapping(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return by_root(schedule, call, comm, KNOMIAL)


cdef int recursive_doubling(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    """All of it reduced on every rank, which keeps its part."""
    cdef Py_ssize_t total = before(call, comm.size), own = part(call, comm.rank)
    cdef size_t result = schedule.scratch(total, call.recv_type)
    reduce_by_doubling(schedule, own_address(call), result, total, call.recv_type, call.operation, comm)
    schedule.next_round()
    return schedule.copy(result + before(call, comm.rank) * call.recv_type.extent, own, call.recv_type, call.recv_address,
                         own, call.recv_type)


cdef int recursive_halving(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    """Partners give each other the half of what they have that is the other's.  Who stands for two has both parts."""
    cdef Folding folding = fold_ranks(comm)
    cdef Py_ssize_t *starts = make_starts(schedule, &folding)
    cdef Typemap typemap = call.recv_type
    cdef Py_ssize_t total = before(call, comm.size), own = part(call, comm.rank)
    cdef size_t gathered
    cdef int new, rank
    for new in range(folding.count):
        rank = old_rank(&folding, new)
        starts[new] = before(call, rank - 1 if stands_for_two(&folding, rank) else rank)
    starts[folding.count] = total
    gathered = schedule.scratch(total, typemap) if folding.own >= 0 else 0
    reduce_halves(schedule, &folding, own_address(call), gathered, starts, typemap, call.operation, comm)
    schedule.next_round()
    if folding.own < 0:
        return schedule.recv(call.recv_address, own, typemap, comm.rank + 1)
    if stands_for_two(&folding, comm.rank):
        schedule.send(gathered + starts[folding.own] * typemap.extent, part(call, comm.rank - 1), typemap, comm.rank - 1)
    return schedule.copy(gathered + before(call, comm.rank) * typemap.extent, own, typemap, call.recv_address, own, typemap)


cdef int pairwise(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    """In round k a rank sends the rank k further its part, and takes in its own from the rank k before."""
    cdef int size = comm.size, rank = comm.rank, step, to
    cdef Typemap typemap = call.recv_type
    cdef Py_ssize_t extent = typemap.extent, count = part(call, rank)
    cdef size_t own = own_address(call), result = call.recv_address, incoming = schedule.scratch(count, typemap)
    if call.send_in_place:
        # The result's place holds what other ranks have still to be sent.
        result = schedule.scratch(count, typemap)
    schedule.copy(own + before(call, rank) * extent, count, typemap, result, count, typemap)
    for step in range(1, size):
        to = (rank + step) % size
        schedule.recv(incoming, count, typemap, (rank - step + size) % size)
        schedule.send(own + before(call, to) * extent, part(call, to), typemap, to)
        schedule.next_round()
        schedule.reduce(incoming, result, count, typemap, call.operation)
    if call.send_in_place:
        schedule.copy(result, count, typemap, call.recv_address, count, typemap)
    return 0


cdef int ring(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    """Each part goes round, and every rank adds its own to it, until it comes to its rank.

        part p     p+1 -> p+2 -> ... -> p
    """
    cdef int size = comm.size, rank = comm.rank, step, arriving, leaving
    cdef int right = (rank + 1) % size, left = (rank - 1 + size) % size
    cdef Typemap typemap = call.recv_type
    cdef Py_ssize_t extent = typemap.extent, longest = 0
    cdef size_t own = own_address(call), source, target
    cdef size_t passing[2]
    for step in range(size):
        longest = max(longest, part(call, step))
    passing[0] = schedule.scratch(longest, typemap)
    passing[1] = schedule.scratch(longest, typemap)
    source = own + before(call, left) * extent
    if size == 1:
        return 0 if call.send_in_place else schedule.copy(own, part(call, 0), typemap, call.recv_address, part(call, 0),
                                                          typemap)
    for step in range(size - 1):
        leaving = (left - step + size) % size
        arriving = (leaving - 1 + size) % size
        # In place, the result's place may still hold what is to be added.
        target = passing[step & 1] if arriving != rank or call.send_in_place else call.recv_address
        schedule.send(source, part(call, leaving), typemap, right)
        schedule.recv(target, part(call, arriving), typemap, left)
        schedule.next_round()
        schedule.reduce(own + before(call, arriving) * extent, target, part(call, arriving), typemap, call.operation)
        source = target
    if call.send_in_place:
        schedule.copy(source, part(call, rank), typemap, call.recv_address, part(call, rank), typemap)
    return 0


BUILDERS = {
    (function, name): make
    for function in ("reduce_scatter_block", "reduce_scatter")
    for name, make in (
        ("linear", builder(linear)),
        ("nonoverlapping", builder(nonoverlapping)),
        ("recursive_doubling", builder(recursive_doubling)),
        ("recursive_halving", builder(recursive_halving)),
        ("pairwise", builder(pairwise)),
        ("ring", builder(ring)),
    )
}
