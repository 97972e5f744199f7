# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Alltoall, alltoallv and alltoallw (MPI-4.1, 6.8): the three differ only in their layouts."""
from ompy.core.basic cimport BASIC_BYTE
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap, predefined
from ompy.mca.coll cimport CollectiveCall
from ompy_coll_basic.builder cimport builder
from ompy_coll_basic.layout cimport (
    Layout, address_of, copy_block, count_of, receiving, recv_block, send_block, sending, type_of,
)

cdef Typemap byte = predefined(BASIC_BYTE)


cdef int set_aside(Schedule schedule, Layout *blocks, size_t *copies, int size) except -1:
    """In place: pack every block, since what arrives takes the place of what is sent."""
    cdef Py_ssize_t total = 0, nbytes
    cdef int rank
    cdef size_t address
    for rank in range(size):
        total += count_of(blocks, rank) * type_of(blocks, rank).size
    address = copies[0] = schedule.scratch(total, byte)
    for rank in range(size):
        nbytes = count_of(blocks, rank) * type_of(blocks, rank).size
        schedule.copy(address_of(blocks, rank), count_of(blocks, rank), type_of(blocks, rank), address, nbytes, byte)
        address += nbytes
    return 0


cdef int in_place(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    cdef Layout blocks = receiving(call)
    cdef size_t address
    cdef Py_ssize_t nbytes
    cdef int rank
    set_aside(schedule, &blocks, &address, comm.size)
    for rank in range(comm.size):
        if rank != comm.rank:
            recv_block(schedule, &blocks, rank, rank)
    for rank in range(comm.size):
        nbytes = count_of(&blocks, rank) * type_of(&blocks, rank).size
        if rank != comm.rank and (nbytes or blocks.counts == NULL):
            schedule.send(address, nbytes, byte, rank)
        address += nbytes
    return 0


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    """All messages at once; each begins with the next rank, so that none is hit by all at once."""
    cdef Layout source, target
    cdef int step, size = comm.size
    if call.send_in_place:
        return in_place(schedule, call, comm)
    source, target = sending(call), receiving(call)
    for step in range(1, size):
        recv_block(schedule, &target, (comm.rank - step + size) % size, (comm.rank - step + size) % size)
    for step in range(1, size):
        send_block(schedule, &source, (comm.rank + step) % size, (comm.rank + step) % size)
    return copy_block(schedule, &source, comm.rank, &target, comm.rank)


cdef int pairwise(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    """In round k to the rank k further, from the rank k before: one message each way at a time."""
    cdef Layout source, target
    cdef int step, to, origin, size = comm.size
    if call.send_in_place:
        return in_place(schedule, call, comm)
    source, target = sending(call), receiving(call)
    copy_block(schedule, &source, comm.rank, &target, comm.rank)
    for step in range(1, size):
        to = (comm.rank + step) % size
        origin = (comm.rank - step + size) % size
        recv_block(schedule, &target, origin, origin)
        send_block(schedule, &source, to, to)
        schedule.next_round()
    return 0


cdef int logarithmic(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    """Bruck: slot i holds what must travel i ranks further, and moves 2**k ranks in round k when i has bit k.

        rank r, slots      0  1  2  3  4
        round 0 (by 1)        x     x            a message of two blocks
        round 1 (by 2)           x  x
        round 2 (by 4)                 x
        slot i then holds the block that rank r - i sent here
    """
    cdef Layout source, target
    cdef int size = comm.size, bit = 1, slot, packed
    cdef Py_ssize_t block
    cdef size_t slots, outgoing, incoming
    if call.send_in_place:
        return in_place(schedule, call, comm)
    source, target = sending(call), receiving(call)
    block = call.send_count * call.send_type.size
    slots = schedule.scratch(size * block, byte)
    outgoing = schedule.scratch((size + 1) // 2 * block, byte)
    incoming = schedule.scratch((size + 1) // 2 * block, byte)
    for slot in range(size):
        schedule.copy(address_of(&source, (comm.rank + slot) % size), call.send_count, call.send_type,
                      slots + slot * block, block, byte)
    while bit < size:
        packed = 0
        for slot in range(size):
            if slot & bit:
                schedule.copy(slots + slot * block, block, byte, outgoing + packed * block, block, byte)
                packed += 1
        schedule.send(outgoing, packed * block, byte, (comm.rank + bit) % size)
        schedule.recv(incoming, packed * block, byte, (comm.rank - bit + size) % size)
        schedule.next_round()
        packed = 0
        for slot in range(size):
            if slot & bit:
                schedule.copy(incoming + packed * block, block, byte, slots + slot * block, block, byte)
                packed += 1
        bit <<= 1
    for slot in range(size):
        schedule.copy(slots + slot * block, block, byte, address_of(&target, (comm.rank - slot + size) % size),
                      call.recv_count, call.recv_type)
    return 0


cdef int between_groups(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    cdef Layout source = sending(call), target = receiving(call)
    cdef int rank
    for rank in range(comm.remote_size):
        recv_block(schedule, &target, rank, rank)
    for rank in range(comm.remote_size):
        send_block(schedule, &source, rank, rank)
    return 0


BUILDERS = {
    ("alltoall", "linear"): builder(linear),
    ("alltoall", "pairwise"): builder(pairwise),
    ("alltoall", "logarithmic"): builder(logarithmic),
    ("alltoallv", "linear"): builder(linear),
    ("alltoallv", "pairwise"): builder(pairwise),
    ("alltoallw", "linear"): builder(linear),
    ("alltoallw", "pairwise"): builder(pairwise),
    ("alltoall inter", "linear"): builder(between_groups),
    ("alltoallv inter", "linear"): builder(between_groups),
    ("alltoallw inter", "linear"): builder(between_groups),
}
