# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Allreduce (MPI-4.1, 6.9.6).  Every rank gets the same bits: each result is computed once, or in one order everywhere."""
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap
from ompy.mca.coll cimport CollectiveCall
from ompy_coll_basic.bcast cimport send_down_tree, send_to_each
from ompy_coll_basic.builder cimport builder
from ompy_coll_basic.reduce cimport own_address, reduce_in_turn, reduce_up_tree, take_in_at_once


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    reduce_in_turn(schedule, own_address(call), call.recv_address, call.recv_count, call.recv_type, call.operation, 0, comm)
    schedule.next_round()
    return send_to_each(schedule, call.recv_address, call.recv_count, call.recv_type, 0, comm)


cdef int logarithmic(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    reduce_up_tree(schedule, own_address(call), call.recv_address, call.recv_count, call.recv_type, call.operation, 0, comm)
    schedule.next_round()
    return send_down_tree(schedule, call.recv_address, call.recv_count, call.recv_type, 0, comm)


cdef inline int seat_rank(int seat, int folded) noexcept:
    return 2 * seat + 1 if seat < folded else seat + folded


cdef int recursive_doubling(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    """Partners 1, 2, 4, ... seats away swap what they have gathered, and both reduce it, the lower seat's on the left.

    Where the ranks are no power of two, the first even ones hand theirs to the next rank, which takes a seat for both:

        ranks 0+1  2  3  4      fold 0 into 1; seats 0 1 2 3 are ranks 1 2 3 4
    """
    cdef int size = comm.size, rank = comm.rank
    cdef Py_ssize_t count = call.recv_count
    cdef Typemap typemap = call.recv_type
    cdef size_t gathered = call.recv_address, other
    cdef int seats = 1, folded, seat, bit = 1, partner
    while 2 * seats <= size:
        seats *= 2
    folded = size - seats
    if not call.send_in_place:
        schedule.copy(call.send_address, count, typemap, gathered, count, typemap)
    if rank < 2 * folded and not rank & 1:
        schedule.send(gathered, count, typemap, rank + 1)
        schedule.next_round()
        return schedule.recv(gathered, count, typemap, rank + 1)
    other = schedule.scratch(count, typemap)
    if rank < 2 * folded:
        schedule.recv(other, count, typemap, rank - 1)
        schedule.next_round()
        schedule.reduce(other, gathered, count, typemap, call.operation)
    seat = rank // 2 if rank < 2 * folded else rank - folded
    while bit < seats:
        partner = seat_rank(seat ^ bit, folded)
        schedule.send(gathered, count, typemap, partner)
        schedule.recv(other, count, typemap, partner)
        schedule.next_round()
        if seat & bit:
            schedule.reduce(other, gathered, count, typemap, call.operation)
        else:
            schedule.reduce(gathered, other, count, typemap, call.operation)
            gathered, other = other, gathered
        bit <<= 1
    if gathered != call.recv_address:
        schedule.copy(gathered, count, typemap, call.recv_address, count, typemap)
    if rank < 2 * folded:
        schedule.send(call.recv_address, count, typemap, rank - 1)
    return 0


cdef inline Py_ssize_t first_of(Py_ssize_t count, int part, int parts) noexcept:
    """Where a part of `count` elements begins; the first parts are one longer when they don't come out even."""
    return part * (count // parts) + min(<Py_ssize_t> part, count % parts)


cdef int ring(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
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
        if not call.send_in_place:
            schedule.copy(own, call.recv_count, typemap, call.recv_address, call.recv_count, typemap)
        return 0
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


cdef int between_groups(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    """Each group gets the other's reduction: every rank takes it in for itself."""
    cdef int rank
    for rank in range(comm.remote_size):
        schedule.send(call.send_address, call.send_count, call.send_type, rank)
    return take_in_at_once(schedule, call.recv_address, call.recv_count, call.recv_type, call.operation, comm.remote_size)


BUILDERS = {
    ("allreduce", "linear"): builder(linear),
    ("allreduce", "logarithmic"): builder(logarithmic),
    ("allreduce", "recursive_doubling"): builder(recursive_doubling),
    ("allreduce", "ring"): builder(ring),
    ("allreduce inter", "linear"): builder(between_groups),
}
