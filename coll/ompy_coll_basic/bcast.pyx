# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Broadcast (MPI-4.1, 6.4)."""
from ompy.core.basic cimport BASIC_BYTE
from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport PROC_NULL, ROOT
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap, predefined
from ompy.mca.coll cimport CollectiveCall
from ompy_coll_basic.builder cimport builder

cdef Typemap byte = predefined(BASIC_BYTE)


cdef int send_to_each(Schedule schedule, size_t address, Py_ssize_t count, Typemap typemap, int root,
                      Communicator comm) except -1:
    cdef int rank
    if comm.rank != root:
        return schedule.recv(address, count, typemap, root)
    for rank in range(comm.size):
        if rank != root:
            schedule.send(address, count, typemap, rank)
    return 0


cdef int send_down_tree(Schedule schedule, size_t address, Py_ssize_t count, Typemap typemap, int root,
                        Communicator comm) except -1:
    """Down a binomial tree, ranks counted from the root; the largest subtree first.

        0 -> 4 -> 6 -> 7       who has the data after each round, of 8:   0 | 0 4 | 0 2 4 6 | 0 to 7
        0 -> 2 -> 3   4 -> 5
        0 -> 1
    """
    cdef int size = comm.size
    cdef int place = (comm.rank - root + size) % size
    cdef int bit = 1
    while bit < size and not place & bit:
        bit <<= 1
    if place:
        schedule.recv(address, count, typemap, (place - bit + root) % size)
        schedule.next_round()
    bit >>= 1
    while bit:
        if place + bit < size:
            schedule.send(address, count, typemap, (place + bit + root) % size)
        bit >>= 1
    return 0


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return send_to_each(schedule, call.send_address, call.send_count, call.send_type, call.root, comm)


cdef int logarithmic(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return send_down_tree(schedule, call.send_address, call.send_count, call.send_type, call.root, comm)


cdef inline Py_ssize_t before(Py_ssize_t total, Py_ssize_t share, int place) noexcept:
    """Bytes that come before a place's part."""
    return min(total, share * place)


cdef int scatter_allgather(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    """Each rank gets one part of the bytes down a binomial tree, then the parts go round a ring.

    Ranks may describe the data by different types, so parts are parts of the packed bytes.
    """
    cdef int size = comm.size
    cdef int place = (comm.rank - call.root + size) % size
    cdef int right = (comm.rank + 1) % size
    cdef int left = (comm.rank - 1 + size) % size
    cdef Py_ssize_t total = call.send_count * call.send_type.size
    cdef Py_ssize_t share = (total + size - 1) // size
    cdef Py_ssize_t begin, end
    cdef size_t data = call.send_address
    cdef bint packed = not call.send_type.contiguous
    cdef int bit = 1, part, step
    if packed:
        data = schedule.scratch(total, byte)
        if place == 0:
            schedule.copy(call.send_address, call.send_count, call.send_type, data, total, byte)
    while bit < size and not place & bit:
        bit <<= 1
    if place:
        begin = before(total, share, place)
        end = before(total, share, min(place + bit, size))
        schedule.recv(data + begin, end - begin, byte, (place - bit + call.root) % size)
        schedule.next_round()
    bit >>= 1
    while bit:
        if place + bit < size:
            begin = before(total, share, place + bit)
            end = before(total, share, min(place + 2 * bit, size))
            schedule.send(data + begin, end - begin, byte, (place + bit + call.root) % size)
        bit >>= 1
    for step in range(size - 1):
        # The root has everything, and its memory may be read-only: the last place sends nothing on to it.
        schedule.next_round()
        part = (place - step + size) % size
        if place != size - 1:
            begin, end = before(total, share, part), before(total, share, part + 1)
            schedule.send(data + begin, end - begin, byte, right)
        if place:
            part = (part - 1 + size) % size
            begin, end = before(total, share, part), before(total, share, part + 1)
            schedule.recv(data + begin, end - begin, byte, left)
    if packed and place:
        schedule.next_round()
        schedule.copy(data, total, byte, call.send_address, call.send_count, call.send_type)
    return 0


cdef int between_groups(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    cdef int rank
    if call.root == ROOT:
        for rank in range(comm.remote_size):
            schedule.send(call.send_address, call.send_count, call.send_type, rank)
    elif call.root != PROC_NULL:
        schedule.recv(call.send_address, call.send_count, call.send_type, call.root)
    return 0


BUILDERS = {
    ("bcast", "linear"): builder(linear),
    ("bcast", "logarithmic"): builder(logarithmic),
    ("bcast", "scatter_allgather"): builder(scatter_allgather),
    ("bcast inter", "linear"): builder(between_groups),
}
