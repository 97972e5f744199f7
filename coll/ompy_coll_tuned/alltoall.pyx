# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Alltoall, alltoallv and alltoallw (MPI-4.1, 6.8): the three differ only in their layouts."""
from ompy.core.basic cimport BASIC_BYTE
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap, predefined
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.coll_layout cimport Layout, address_of, copy_block, receiving, recv_block, send_block, sending, type_of
from ompy.mca.scheduled_coll cimport set_aside
from ompy_coll_tuned.algorithm cimport Tuning, builder

cdef Typemap byte = predefined(BASIC_BYTE)


cdef int exchange(Schedule schedule, CollectiveCall call, Communicator comm, bint in_rounds) except -1:
    """In step k to the rank k further, from the rank k before."""
    cdef Layout target = receiving(call)
    cdef Layout source = set_aside(schedule, &target, comm.size) if call.send_in_place else sending(call)
    cdef int step, to, origin, size = comm.size
    if not call.send_in_place:
        copy_block(schedule, &source, comm.rank, &target, comm.rank)
    for step in range(1, size):
        to = (comm.rank + step) % size
        origin = (comm.rank - step + size) % size
        recv_block(schedule, &target, origin, origin)
        send_block(schedule, &source, to, to)
        if in_rounds:
            schedule.next_round()
    return 0


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return exchange(schedule, call, comm, False)


cdef int pairwise(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return exchange(schedule, call, comm, True)


cdef int bruck(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    """Slot i holds what must travel i ranks further, and moves 2**k ranks in round k when i has bit k (Bruck et al., TPDS
    8(11), 1997).

        rank r, slots      0  1  2  3  4
        round 0 (by 1)        x     x            a message of two blocks
        round 1 (by 2)           x  x
        round 2 (by 4)                 x
        slot i then holds the block that rank r - i sent here
    """
    cdef Layout target = receiving(call)
    cdef Layout source = target if call.send_in_place else sending(call)
    cdef int size = comm.size, bit = 1, slot, packed
    cdef Py_ssize_t block = call.recv_count * call.recv_type.size
    cdef size_t slots = schedule.scratch(size * block, byte)
    cdef size_t outgoing = schedule.scratch((size + 1) // 2 * block, byte)
    cdef size_t incoming = schedule.scratch((size + 1) // 2 * block, byte)
    for slot in range(size):
        schedule.copy(address_of(&source, (comm.rank + slot) % size), source.count, type_of(&source, slot),
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


BUILDERS = {
    ("alltoall", "linear"): builder(linear),
    ("alltoall", "pairwise"): builder(pairwise),
    ("alltoall", "bruck"): builder(bruck),
    ("alltoallv", "linear"): builder(linear),
    ("alltoallv", "pairwise"): builder(pairwise),
    ("alltoallw", "linear"): builder(linear),
    ("alltoallw", "pairwise"): builder(pairwise),
}
