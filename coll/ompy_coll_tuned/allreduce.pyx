# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Allreduce (MPI-4.1, 6.9.6).  Every rank gets the same bits: each result is computed once, or in one order everywhere."""
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.scheduled_coll cimport first_of, own_address
from ompy_coll_tuned.algorithm cimport Tuning, builder
from ompy_coll_tuned.bcast cimport send_down
from ompy_coll_tuned.halving cimport (
    Folding, fold_ranks, make_starts, reduce_by_doubling, reduce_halves, share_parts, stands_for_two,
)
from ompy_coll_tuned.reduce cimport reduce_up
from ompy_coll_tuned.tree cimport KNOMIAL, LINEAR, Shape, make_tree


cdef int by_root(Schedule schedule, CollectiveCall call, Communicator comm, Shape shape) except -1:
    reduce_up(schedule, own_address(call), call.recv_address, call.recv_count, call.recv_type, call.operation, 0, shape, 2, 0,
              comm)
    schedule.next_round()
    return send_down(schedule, call.recv_address, call.recv_count, call.recv_type, make_tree(shape, 2, 0, comm), 0)


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return by_root(schedule, call, comm, LINEAR)


cdef int nonoverlapping(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return by_root(schedule, call, comm, KNOMIAL)


cdef int recursive_doubling(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return reduce_by_doubling(schedule, own_address(call), call.recv_address, call.recv_count, call.recv_type,
                              call.operation, comm)


cdef int rabenseifner(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    """A reduce_scatter by recursive halving, then an allgather by recursive doubling."""
    cdef Folding folding = fold_ranks(comm)
    cdef Py_ssize_t *starts = make_starts(schedule, &folding)
    cdef int part
    for part in range(folding.count + 1):
        starts[part] = first_of(call.recv_count, part, folding.count)
    reduce_halves(schedule, &folding, own_address(call), call.recv_address, starts, call.recv_type, call.operation, comm)
    schedule.next_round()
    share_parts(schedule, &folding, call.recv_address, starts, call.recv_type)
    if folding.own < 0:
        return schedule.recv(call.recv_address, call.recv_count, call.recv_type, comm.rank + 1)
    if stands_for_two(&folding, comm.rank):
        return schedule.send(call.recv_address, call.recv_count, call.recv_type, comm.rank - 1)
    return 0


cdef int ring(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    """The vector in as many parts as ranks; each part goes round and is added to, then goes round again complete.

        part p starts on rank p:   p -> p+1 -> ... -> p-1, which has all of it;   p-1 -> p -> ... -> p-2
    """
    cdef int size = comm.size, rank = comm.rank
    cdef int right = (rank + 1) % size
    cdef int left = (rank - 1 + size) % size
    cdef Typemap typemap = call.recv_type
    cdef size_t own = own_address(call), incoming = 0, source
    cdef Py_ssize_t first, length
    cdef int step, part
    if size == 1:
        return 0 if call.send_in_place else schedule.copy(own, call.recv_count, typemap, call.recv_address, call.recv_count,
                                                          typemap)
    if call.send_in_place:
        incoming = schedule.scratch(first_of(call.recv_count, 1, size), typemap)
    for step in range(size - 1):
        part = (rank - step + size) % size
        first = first_of(call.recv_count, part, size)
        source = own if step == 0 else call.recv_address
        schedule.send(source + first * typemap.extent, first_of(call.recv_count, part + 1, size) - first, typemap, right)
        part = (left - step + size) % size
        first = first_of(call.recv_count, part, size)
        length = first_of(call.recv_count, part + 1, size) - first
        if call.send_in_place:
            schedule.recv(incoming, length, typemap, left)
            schedule.next_round()
            schedule.reduce(incoming, own + first * typemap.extent, length, typemap, call.operation)
        else:
            schedule.recv(call.recv_address + first * typemap.extent, length, typemap, left)
            schedule.next_round()
            schedule.reduce(own + first * typemap.extent, call.recv_address + first * typemap.extent, length, typemap,
                            call.operation)
    for step in range(size - 1):
        part = (right - step + size) % size
        first = first_of(call.recv_count, part, size)
        schedule.send(call.recv_address + first * typemap.extent, first_of(call.recv_count, part + 1, size) - first, typemap,
                      right)
        part = (rank - step + size) % size
        first = first_of(call.recv_count, part, size)
        schedule.recv(call.recv_address + first * typemap.extent, first_of(call.recv_count, part + 1, size) - first, typemap,
                      left)
        schedule.next_round()
    return 0


BUILDERS = {
    ("allreduce", "linear"): builder(linear),
    ("allreduce", "nonoverlapping"): builder(nonoverlapping),
    ("allreduce", "recursive_doubling"): builder(recursive_doubling),
    ("allreduce", "rabenseifner"): builder(rabenseifner),
    ("allreduce", "ring"): builder(ring),
}
