# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Broadcast (MPI-4.1, 6.4).

Ranks may describe the data by different types of the same signature, so pieces and parts are those of the packed bytes.
"""
from ompy.core.basic cimport BASIC_BYTE
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap, predefined
from ompy.mca.coll cimport CollectiveCall
from ompy_coll_tuned.algorithm cimport Tuning, builder
from ompy_coll_tuned.tree cimport BINARY, CHAIN, KNOMIAL, LINEAR, Tree, make_tree

cdef Typemap byte = predefined(BASIC_BYTE)


cdef int send_down(Schedule schedule, size_t address, Py_ssize_t count, Typemap typemap, Tree tree,
                   Py_ssize_t segment) except -1:
    """A piece goes on to the children while the next one comes from the parent; the largest subtree first.

        chain of 3, 2 pieces      round 0   recv 0
        seen by place 1           round 1   recv 1, send 0
                                  round 2           send 1

    Who has no children expects all pieces from the start, so that none has to be stored.
    """
    cdef Py_ssize_t total = count * typemap.size, begin = 0, length
    cdef bint packed = 0 < segment < total
    cdef bint copied = packed and not typemap.contiguous
    cdef size_t data = address
    cdef int child
    if packed:
        data = schedule.scratch(total, byte) if copied else address
        if copied and tree.parent < 0:
            schedule.copy(address, count, typemap, data, total, byte)
    else:
        segment = count
        total = count
    cdef Typemap unit = byte if packed else typemap
    if tree.parent >= 0:
        schedule.recv(data, min(segment, total), unit, tree.rank(tree.parent))
    while tree.count == 0 and begin + segment < total:
        begin += segment
        schedule.recv(data + begin, min(segment, total - begin), unit, tree.rank(tree.parent))
    while tree.count and (begin < total or begin == 0):
        length = min(segment, total - begin)
        schedule.next_round()
        if tree.parent >= 0 and begin + length < total:
            schedule.recv(data + begin + length, min(segment, total - begin - length), unit, tree.rank(tree.parent))
        for child in range(tree.count - 1, -1, -1):
            schedule.send(data + begin, length, unit, tree.rank(tree.children[child]))
        begin += max(length, 1)
    if copied and tree.parent >= 0:
        schedule.next_round()
        schedule.copy(data, total, byte, address, count, typemap)
    return 0


cdef inline int down(Schedule schedule, CollectiveCall call, Tree tree, Py_ssize_t segment) except -1:
    return send_down(schedule, call.send_address, call.send_count, call.send_type, tree, segment)


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return down(schedule, call, make_tree(LINEAR, 0, call.root, comm), 0)


cdef int chain(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return down(schedule, call, make_tree(CHAIN, tuning.fanout, call.root, comm), tuning.segment)


cdef int pipeline(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return down(schedule, call, make_tree(CHAIN, 1, call.root, comm), tuning.segment)


cdef int binary(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return down(schedule, call, make_tree(BINARY, 2, call.root, comm), tuning.segment)


cdef int binomial(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return down(schedule, call, make_tree(KNOMIAL, 2, call.root, comm), tuning.segment)


cdef int knomial(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return down(schedule, call, make_tree(KNOMIAL, tuning.fanout, call.root, comm), tuning.segment)


cdef inline Py_ssize_t before(Py_ssize_t total, int size, int place) noexcept:
    """Bytes that come before a place's part."""
    return min(total, (total + size - 1) // size * place)


cdef int scatter_then(Schedule schedule, CollectiveCall call, Communicator comm, bint by_ring) except -1:
    """Each rank gets one part of the bytes down a binomial tree, then all get all (van de Geijn 1994).

    The root has everything, and its memory may be read-only: nobody sends on to it.
    """
    cdef int size = comm.size, child, step, part, bit = 1, mine, other
    cdef Tree tree = make_tree(KNOMIAL, 2, call.root, comm)
    cdef int place = tree.place
    cdef Py_ssize_t total = call.send_count * call.send_type.size
    cdef Py_ssize_t begin, end
    cdef size_t data = call.send_address
    cdef bint packed = not call.send_type.contiguous
    if packed:
        data = schedule.scratch(total, byte)
        if place == 0:
            schedule.copy(call.send_address, call.send_count, call.send_type, data, total, byte)
    if place:
        begin, end = before(total, size, place), before(total, size, tree.end)
        schedule.recv(data + begin, end - begin, byte, tree.rank(tree.parent))
        schedule.next_round()
    for child in range(tree.count - 1, -1, -1):
        begin, end = before(total, size, tree.children[child]), before(total, size, tree.child_end(child))
        schedule.send(data + begin, end - begin, byte, tree.rank(tree.children[child]))
    if by_ring:
        for step in range(size - 1):
            schedule.next_round()
            part = (place - step + size) % size
            if place != size - 1:
                begin, end = before(total, size, part), before(total, size, part + 1)
                schedule.send(data + begin, end - begin, byte, tree.rank(place + 1))
            if place:
                part = (part - 1 + size) % size
                begin, end = before(total, size, part), before(total, size, part + 1)
                schedule.recv(data + begin, end - begin, byte, tree.rank(place - 1))
    while bit < size and not by_ring:
        schedule.next_round()
        mine = place & ~(bit - 1)
        other = mine ^ bit
        if place != bit:
            begin, end = before(total, size, mine), before(total, size, mine + bit)
            schedule.send(data + begin, end - begin, byte, tree.rank(place ^ bit))
        if place:
            begin, end = before(total, size, other), before(total, size, other + bit)
            schedule.recv(data + begin, end - begin, byte, tree.rank(place ^ bit))
        bit <<= 1
    if packed and place:
        schedule.next_round()
        schedule.copy(data, total, byte, call.send_address, call.send_count, call.send_type)
    return 0


cdef int scatter_allgather(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    """Where the ranks are a power of two: all get all by recursive doubling."""
    return scatter_then(schedule, call, comm, False)


cdef int scatter_allgather_ring(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return scatter_then(schedule, call, comm, True)


BUILDERS = {
    ("bcast", "linear"): builder(linear),
    ("bcast", "chain"): builder(chain),
    ("bcast", "pipeline"): builder(pipeline),
    ("bcast", "binary"): builder(binary),
    ("bcast", "binomial"): builder(binomial),
    ("bcast", "knomial"): builder(knomial),
    ("bcast", "scatter_allgather"): builder(scatter_allgather),
    ("bcast", "scatter_allgather_ring"): builder(scatter_allgather_ring),
}
