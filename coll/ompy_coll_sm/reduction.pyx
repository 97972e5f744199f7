# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Collectives that reduce.

A reduction of ranks 0 to 3 is always a0 op (a1 op (a2 op a3)), whoever came first, so results are the same on every rank
and in every run.
"""
from libc.string cimport memcpy

from ompy.core.operation cimport Operation
from ompy.core.typemap cimport Typemap

from ompy_coll_sm.agreement cimport differs, meet, piece_of, whole
from ompy_coll_sm.area cimport SHORT


cdef int fold(Area area, char *target, const char *last, size_t offset, size_t own_address, size_t nbytes, size_t whole_step,
              int first, int count, Typemap typemap, Operation operation) except -1:
    """Reduce ranks `first` to `first + count - 1` into target, rightmost first.

    Parameters:
        last: contribution of the last of them.
        offset: of the bytes wanted in each contribution.
        own_address: of this rank's contribution when it was not put up, else 0.
        nbytes: wanted.
        whole_step: bytes of a contribution, which say where it stands.
    """
    cdef int rank
    cdef char *input
    memcpy(target, last + offset, nbytes)
    for rank in range(first + count - 2, first - 1, -1):
        input = <char *> own_address if own_address and rank == area.rank else area.look_at(rank, whole_step)
        operation.reduce(input + offset, target, nbytes // typemap.size, typemap)
    return 0


cdef int reduce(Area area, CollectiveCall call) except -1:
    cdef bint in_place = call.send_in_place
    cdef Typemap typemap = call.recv_type if in_place else call.send_type
    cdef size_t total = (call.recv_count if in_place else call.send_count) * typemap.size
    cdef size_t piece = piece_of(total, whole(area.chunk, typemap.size)), offset = 0, nbytes
    cdef size_t own = 0
    cdef const char *last
    cdef char *place
    cdef int rank, other = -1
    while True:
        nbytes = min(piece, total - offset)
        if area.rank != call.root:
            memcpy(area.claim(piece), <char *> (call.send_address + offset), nbytes)
            area.put_up(total)
        else:
            place = area.claim(piece)
            if in_place or nbytes == 0:
                # The result overwrites this rank's contribution, which may be needed after that; and no bytes may be
                # at address 0, which means that a contribution was put up.
                memcpy(place, <char *> (call.recv_address + offset), nbytes)
                own = <size_t> place
            else:
                own = call.send_address + offset
            last = <char *> own if area.rank == area.size - 1 else area.look_at(area.size - 1, piece)
            fold(area, <char *> (call.recv_address + offset), last, 0, own, nbytes, piece, 0, area.size, typemap,
                 call.operation)
            for rank in range(area.size):
                if rank != area.rank and area.line(rank).length != total:
                    other = rank
        area.end()
        offset += nbytes
        if offset >= total:
            break
    return differs(area, other, total)


cdef int allreduce(Area area, CollectiveCall call) except -1:
    cdef Typemap typemap = call.recv_type if call.send_in_place else call.send_type
    cdef size_t total = (call.recv_count if call.send_in_place else call.send_count) * typemap.size
    cdef size_t source = call.recv_address if call.send_in_place else call.send_address
    if total > SHORT:
        return allreduce_long(area, source, call.recv_address, total, typemap, call.operation)
    memcpy(area.claim(total), <char *> source, total)
    area.put_up(total)
    meet(area, total)
    fold(area, <char *> call.recv_address, area.look_at(area.size - 1, total), 0, 0, total, total, 0, area.size, typemap,
         call.operation)
    return area.end()


cdef int allreduce_long(Area area, size_t source, size_t target, size_t total, Typemap typemap,
                        Operation operation) except -1:
    """Each rank reduces its slice of a piece, leaves it where its contribution stood, and takes the others' slices.

        piece of rank 0   | a0 b0 c0 |      then     | A .. .. |        A = a0 op a1 op a2
        piece of rank 1   | a1 b1 c1 |               | .. B .. |
        piece of rank 2   | a2 b2 c2 |               | .. .. C |
    """
    cdef size_t piece = whole(area.chunk, typemap.size), offset = 0, nbytes, low, high
    cdef Py_ssize_t elements
    cdef char *place
    cdef int rank
    while True:
        nbytes = min(piece, total - offset)
        elements = nbytes // typemap.size
        place = area.claim(piece)
        memcpy(place, <char *> (source + offset), nbytes)
        area.put_up(total)
        meet(area, total)
        low = elements * area.rank // area.size * typemap.size
        high = elements * (area.rank + 1) // area.size * typemap.size
        if high > low:
            fold(area, <char *> (target + offset + low), area.look_at(area.size - 1, piece), low, 0, high - low, piece, 0,
                 area.size, typemap, operation)
            memcpy(place + low, <char *> (target + offset + low), high - low)
        area.put_up_second()
        for rank in range(area.size):
            if rank == area.rank:
                continue
            area.look_at_second(rank)
            low = elements * rank // area.size * typemap.size
            high = elements * (rank + 1) // area.size * typemap.size
            memcpy(<char *> (target + offset + low), area.place(rank, piece) + low, high - low)
        area.end()
        offset += nbytes
        if offset >= total:
            break
    return 0


cdef int reduce_scatter_block(Area area, CollectiveCall call) except -1:
    cdef Typemap typemap = call.recv_type
    cdef size_t total = call.recv_count * typemap.size
    cdef size_t source = call.recv_address if call.send_in_place else call.send_address
    cdef size_t part = total if total * area.size <= SHORT else min(total, whole(area.chunk // area.size, typemap.size))
    cdef size_t piece = part * area.size, offset = 0, nbytes
    cdef char *place
    cdef int rank
    while True:
        nbytes = min(part, total - offset)
        place = area.claim(piece)
        for rank in range(area.size):
            memcpy(place + rank * part, <char *> (source + rank * total + offset), nbytes)
        area.put_up(total)
        meet(area, total)
        fold(area, <char *> (call.recv_address + offset), area.look_at(area.size - 1, piece), area.rank * part, 0, nbytes,
             piece, 0, area.size, typemap, call.operation)
        area.end()
        offset += nbytes
        if offset >= total:
            break
    return 0


cdef int reduce_scatter(Area area, CollectiveCall call) except -1:
    """As `reduce_scatter_block`, in as many steps as the longest block asks for."""
    cdef Typemap typemap = call.recv_type
    cdef size_t source = call.recv_address if call.send_in_place else call.send_address
    cdef size_t longest = 0, own = call.recv_counts[area.rank] * typemap.size, part, piece, offset = 0, begin
    cdef char *place
    cdef int rank
    for rank in range(area.size):
        longest = max(longest, <size_t> (call.recv_counts[rank] * typemap.size))
    part = longest if longest * area.size <= SHORT else min(longest, whole(area.chunk // area.size, typemap.size))
    piece = part * area.size
    while True:
        place = area.claim(piece)
        begin = 0
        for rank in range(area.size):
            if offset < <size_t> (call.recv_counts[rank] * typemap.size):
                memcpy(place + rank * part, <char *> (source + begin + offset),
                       min(part, call.recv_counts[rank] * typemap.size - offset))
            begin += call.recv_counts[rank] * typemap.size
        area.put_up(longest)
        meet(area, longest)
        if offset < own:
            fold(area, <char *> (call.recv_address + offset), area.look_at(area.size - 1, piece), area.rank * part, 0,
                 min(part, own - offset), piece, 0, area.size, typemap, call.operation)
        area.end()
        offset += part
        if offset >= longest:
            break
    return 0


cdef int scan(Area area, CollectiveCall call, bint inclusive) except -1:
    cdef Typemap typemap = call.recv_type if call.send_in_place else call.send_type
    cdef size_t total = (call.recv_count if call.send_in_place else call.send_count) * typemap.size
    cdef size_t source = call.recv_address if call.send_in_place else call.send_address
    cdef size_t piece = piece_of(total, whole(area.chunk, typemap.size)), offset = 0, nbytes
    cdef int last = area.rank if inclusive else area.rank - 1
    while True:
        nbytes = min(piece, total - offset)
        memcpy(area.claim(piece), <char *> (source + offset), nbytes)
        area.put_up(total)
        if last >= 0:
            fold(area, <char *> (call.recv_address + offset), area.look_at(last, piece), 0, 0, nbytes, piece, 0, last + 1,
                 typemap, call.operation)
        area.end()
        offset += nbytes
        if offset >= total:
            break
    return 0
