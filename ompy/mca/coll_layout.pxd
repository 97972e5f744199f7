# One side of a call as blocks, one for each rank (or neighbour): the same to an algorithm whether counts, displacements
# and types are given per rank or once for all.
#
#     plain    block i at  address + i * count * extent
#     v        block i at  address + displacements[i] * extent
#     w        block i at  address + displacements[i], in bytes, of types[i]
from cpython.ref cimport PyObject

from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap
from ompy.mca.coll cimport CollectiveCall

cdef struct Layout:
    size_t address
    Py_ssize_t count
    Py_ssize_t *counts                           # NULL: `count` each
    Py_ssize_t *displacements
    PyObject *typemap
    PyObject *types                              # NULL: `typemap` for all; else a list


# References are borrowed from the call, which outlives the building of a schedule.
cdef inline Layout sending(CollectiveCall call):
    cdef Layout layout
    layout.address = call.send_address
    layout.count = call.send_count
    layout.counts = call.send_counts
    layout.displacements = call.send_displacements
    layout.typemap = <PyObject *> call.send_type
    layout.types = NULL if call.send_types is None else <PyObject *> call.send_types
    return layout


cdef inline Layout receiving(CollectiveCall call):
    cdef Layout layout
    layout.address = call.recv_address
    layout.count = call.recv_count
    layout.counts = call.recv_counts
    layout.displacements = call.recv_displacements
    layout.typemap = <PyObject *> call.recv_type
    layout.types = NULL if call.recv_types is None else <PyObject *> call.recv_types
    return layout


# The same blocks on either side: `count` elements each, one after the other.
cdef inline Layout regular(size_t address, Py_ssize_t count, Typemap typemap):
    cdef Layout layout
    layout.address = address
    layout.count = count
    layout.counts = NULL
    layout.displacements = NULL
    layout.typemap = <PyObject *> typemap
    layout.types = NULL
    return layout


cdef inline Typemap type_of(Layout *layout, int index):
    if layout.types != NULL:
        return <Typemap> (<list> layout.types)[index]
    return <Typemap> layout.typemap


cdef inline Py_ssize_t count_of(Layout *layout, int index) noexcept:
    return layout.count if layout.counts == NULL else layout.counts[index]


cdef inline size_t address_of(Layout *layout, int index):
    if layout.types != NULL:
        return layout.address + <size_t> layout.displacements[index]
    cdef Py_ssize_t extent = (<Typemap> layout.typemap).extent
    if layout.counts != NULL:
        return layout.address + <size_t> (layout.displacements[index] * extent)
    return layout.address + <size_t> (index * layout.count * extent)


# Where the counts are given per rank, a block of no bytes sends no message: both sides know that it is empty.
cdef inline int send_block(Schedule schedule, Layout *layout, int index, int peer) except -1:
    cdef Py_ssize_t count = count_of(layout, index)
    cdef Typemap typemap = type_of(layout, index)
    if layout.counts != NULL and count * typemap.size == 0:
        return 0
    return schedule.send(address_of(layout, index), count, typemap, peer)


cdef inline int recv_block(Schedule schedule, Layout *layout, int index, int peer) except -1:
    cdef Py_ssize_t count = count_of(layout, index)
    cdef Typemap typemap = type_of(layout, index)
    if layout.counts != NULL and count * typemap.size == 0:
        return 0
    return schedule.recv(address_of(layout, index), count, typemap, peer)


cdef inline int copy_block(Schedule schedule, Layout *source, int source_index, Layout *target, int target_index) except -1:
    return schedule.copy(address_of(source, source_index), count_of(source, source_index), type_of(source, source_index),
                         address_of(target, target_index), count_of(target, target_index), type_of(target, target_index))


# Elements of a rank's part of what is reduced and scattered, where parts lie one after the other, and those before them.
cdef inline Py_ssize_t part(CollectiveCall call, int rank) noexcept:
    return call.recv_count if call.recv_counts == NULL else call.recv_counts[rank]


cdef inline Py_ssize_t before(CollectiveCall call, int rank) noexcept:
    cdef Py_ssize_t total = 0
    cdef int lower
    if call.recv_counts == NULL:
        return rank * call.recv_count
    for lower in range(rank):
        total += call.recv_counts[lower]
    return total


# In an allgather, this rank's block to its place, unless it is there.
cdef inline int copy_own(Schedule schedule, CollectiveCall call, Layout *target, Communicator comm) except -1:
    cdef Layout own
    if call.send_in_place:
        return 0
    own = regular(call.send_address, call.send_count, call.send_type)
    return copy_block(schedule, &own, 0, target, comm.rank)


# An allgather of every rank's block straight to every other; each begins with the next rank, so that none is hit by all.
cdef inline int allgather_straight(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    cdef Layout target = receiving(call)
    cdef int step, size = comm.size
    copy_own(schedule, call, &target, comm)
    for step in range(1, size):
        recv_block(schedule, &target, (comm.rank - step + size) % size, (comm.rank - step + size) % size)
    for step in range(1, size):
        send_block(schedule, &target, comm.rank, (comm.rank + step) % size)
    return 0
