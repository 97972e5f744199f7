# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Scan and exscan (MPI-4.1, 6.11), in rank order."""
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.scheduled_coll cimport own_address
from ompy_coll_basic.builder cimport builder


cdef int scan_linear(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    """Along the ranks: each adds its own to what the one before sends, and sends that on."""
    cdef Typemap typemap = call.recv_type
    cdef Py_ssize_t count = call.recv_count
    cdef size_t before
    if not call.send_in_place:
        schedule.copy(call.send_address, count, typemap, call.recv_address, count, typemap)
    if comm.rank:
        before = schedule.scratch(count, typemap)
        schedule.recv(before, count, typemap, comm.rank - 1)
        schedule.next_round()
        schedule.reduce(before, call.recv_address, count, typemap, call.operation)
    if comm.rank + 1 < comm.size:
        schedule.send(call.recv_address, count, typemap, comm.rank + 1)
    return 0


cdef int exscan_linear(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    """What arrives is the result; with this rank's own it is sent on.  Rank 0 has no result."""
    cdef Typemap typemap = call.recv_type
    cdef Py_ssize_t count = call.recv_count
    cdef size_t own = own_address(call), through = own
    if comm.rank:
        if comm.rank + 1 < comm.size:
            through = schedule.scratch(count, typemap)
            schedule.copy(own, count, typemap, through, count, typemap)
        schedule.recv(call.recv_address, count, typemap, comm.rank - 1)
        schedule.next_round()
        if comm.rank + 1 < comm.size:
            schedule.reduce(call.recv_address, through, count, typemap, call.operation)
    if comm.rank + 1 < comm.size:
        schedule.send(through, count, typemap, comm.rank + 1)
    return 0


cdef int doubling(Schedule schedule, CollectiveCall call, Communicator comm, bint exclusive) except -1:
    """What a rank has gathered covers 1, 2, 4, ... ranks up to its own; each round it takes in as many before those.

        rank 5      5      4..5      2..5      0..5
        rank 1      1      0..1
    """
    cdef Typemap typemap = call.recv_type
    cdef Py_ssize_t count = call.recv_count
    cdef size_t gathered = call.recv_address, before
    cdef int distance = 1
    cdef bint first = True
    if exclusive:
        gathered = schedule.scratch(count, typemap)
    if gathered != own_address(call):
        schedule.copy(own_address(call), count, typemap, gathered, count, typemap)
    before = schedule.scratch(count, typemap)
    while distance < comm.size:
        if comm.rank + distance < comm.size:
            schedule.send(gathered, count, typemap, comm.rank + distance)
        if comm.rank >= distance:
            schedule.recv(before, count, typemap, comm.rank - distance)
        schedule.next_round()
        if comm.rank >= distance:
            schedule.reduce(before, gathered, count, typemap, call.operation)
            if exclusive and first:
                schedule.copy(before, count, typemap, call.recv_address, count, typemap)
            elif exclusive:
                schedule.reduce(before, call.recv_address, count, typemap, call.operation)
            first = False
        distance <<= 1
    return 0


cdef int scan_logarithmic(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return doubling(schedule, call, comm, False)


cdef int exscan_logarithmic(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return doubling(schedule, call, comm, True)


BUILDERS = {
    ("scan", "linear"): builder(scan_linear),
    ("scan", "logarithmic"): builder(scan_logarithmic),
    ("exscan", "linear"): builder(exscan_linear),
    ("exscan", "logarithmic"): builder(exscan_logarithmic),
}
