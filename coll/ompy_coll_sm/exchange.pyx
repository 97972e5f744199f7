# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=--param=max-inline-insns-single=200 --param=max-inline-insns-auto=30
"""Collectives that move data.  What is not short goes in pieces:

    bcast of 3 pieces     root     put up 1   put up 2   put up 3
                          others              look at 1  look at 2  look at 3
"""
from ompy.core.convertor cimport Convertor
from ompy.core.typemap cimport Typemap

from ompy_coll_sm.agreement cimport (
    check_own,
    differs,
    meet,
    meet_both,
    one_of_all_that_differs,
    part_of,
    piece_of,
    put_up_one_way,
    slot,
    too_long,
    whole,
)
from ompy_coll_sm.area cimport SHORT
from ompy_coll_sm.memory cimport convertor_for, load, store


cdef int barrier(Area area) except -1:
    area.claim(0)
    area.put_up(0)
    meet(area, 0)
    return area.end()


cdef int bcast(Area area, CollectiveCall call) except -1:
    """The others take as many steps as the root's data ask for, whatever they have room for."""
    cdef Convertor convertor = convertor_for(call.send_address, call.send_count, call.send_type)
    cdef size_t room = call.send_count * call.send_type.size, total = room, offset = 0, nbytes, piece
    while True:
        if area.rank == call.root:
            piece = piece_of(total, area.chunk)
            nbytes = min(piece, total - offset)
            load(call.send_address, convertor, offset, area.claim(piece), nbytes)
            area.put_up(total)
        else:
            area.step += 1
            total = area.length_of(call.root)
            piece = piece_of(total, area.chunk)
            nbytes = min(piece, total - offset)
            if offset < room:
                store(call.send_address, convertor, offset, area.place(call.root, piece), min(nbytes, room - offset))
        area.end()
        offset += nbytes
        if offset >= total:
            break
    if total > room:
        raise too_long(call.root, total, room)
    return 0


cdef int gather(Area area, CollectiveCall call) except -1:
    cdef bint is_root = area.rank == call.root
    cdef bint in_place = is_root and call.send_in_place
    cdef size_t total = call.recv_count * call.recv_type.size if is_root else call.send_count * call.send_type.size
    cdef size_t piece = piece_of(total, area.chunk), offset = 0, nbytes
    cdef size_t stride = call.recv_count * call.recv_type.extent if is_root else 0
    cdef Convertor sent = None if in_place else convertor_for(call.send_address, call.send_count, call.send_type)
    cdef list received = []
    cdef char *place
    cdef int rank, other = -1
    if is_root:
        received = [convertor_for(call.recv_address + rank * stride, call.recv_count, call.recv_type)
                    for rank in range(area.size)]
    while True:
        nbytes = min(piece, total - offset)
        place = area.claim(0 if is_root else piece)
        if not is_root:
            load(call.send_address, sent, offset, place, nbytes)
        put_up_one_way(area, not is_root, total, piece, offset)
        if is_root:
            other = one_of_all_that_differs(area, total)
            for rank in range(area.size if other < 0 else 0):
                if rank != area.rank:
                    store(call.recv_address + rank * stride, received[rank], offset, area.place(rank, piece), nbytes)
        area.end()
        offset += nbytes
        if offset >= total:
            break
    if is_root and not in_place:
        check_own(area, call.send_count * call.send_type.size, total)
        copy_own(call.send_address, sent, call.recv_address + area.rank * stride, received[area.rank], total)
    return differs(area, other, total)


cdef int scatter(Area area, CollectiveCall call) except -1:
    cdef bint is_root = area.rank == call.root
    cdef bint in_place = is_root and call.recv_in_place
    cdef size_t total = call.send_count * call.send_type.size if is_root else call.recv_count * call.recv_type.size
    cdef size_t stride = call.send_count * call.send_type.extent if is_root else 0
    cdef size_t room = total, part = scatter_part(area, total), offset = 0, nbytes
    cdef Convertor received = None if in_place else convertor_for(call.recv_address, call.recv_count, call.recv_type)
    cdef list sent = []
    cdef char *place
    cdef int rank, other = -1
    if is_root:
        sent = [convertor_for(call.send_address + rank * stride, call.send_count, call.send_type)
                for rank in range(area.size)]
    while True:
        nbytes = min(part, total - offset)
        if is_root:
            place = area.claim(part * area.size)
            for rank in range(area.size):
                if rank != area.rank:
                    load(call.send_address + rank * stride, sent[rank], offset, place + rank * part, nbytes)
            area.put_up(total)
        else:
            # As many steps as the root takes, whatever this rank has room for.
            area.step += 1
            total = area.length_of(call.root)
            part = scatter_part(area, total)
            nbytes = min(part, total - offset)
            place = area.place(call.root, part * area.size) + area.rank * part
            if offset < room:
                store(call.recv_address, received, offset, place, min(nbytes, room - offset))
            if total != room:
                other = call.root
        area.end()
        offset += nbytes
        if offset >= total:
            break
    if is_root and not in_place:
        check_own(area, call.recv_count * call.recv_type.size, total)
        copy_own(call.send_address + area.rank * stride, sent[area.rank], call.recv_address, received, total)
    return differs(area, other, room)


cdef size_t scatter_part(Area area, size_t total) noexcept:
    """Bytes for each rank in a piece of a scatter."""
    return total if total * area.size <= SHORT else min(total, whole(area.chunk // area.size, 8))


cdef int allgather(Area area, CollectiveCall call) except -1:
    cdef size_t total = call.recv_count * call.recv_type.size
    cdef size_t stride = call.recv_count * call.recv_type.extent
    cdef size_t piece = piece_of(total, area.chunk), offset = 0, nbytes
    cdef size_t source = call.send_address, own = total
    cdef Convertor sent
    cdef list received = None
    cdef char *place
    cdef int rank
    if call.send_in_place:
        source = call.recv_address + area.rank * stride
        sent = convertor_for(source, call.recv_count, call.recv_type)
    else:
        sent = convertor_for(source, call.send_count, call.send_type)
        own = call.send_count * call.send_type.size
    if not call.recv_type.contiguous:
        received = [convertor_for(call.recv_address + rank * stride, call.recv_count, call.recv_type)
                    for rank in range(area.size)]
    while True:
        nbytes = min(piece, total - offset)
        place = area.claim(piece)
        if own == total:
            load(source, sent, offset, place, nbytes)
        area.put_up(own)
        if own == total and not call.send_in_place:
            store(call.recv_address + area.rank * stride, None if received is None else received[area.rank], offset,
                  <char *> (source + offset) if sent is None else area.place(area.rank, piece), nbytes)
        meet_both(area, own, total)
        for rank in range(area.size):
            if rank != area.rank:
                store(call.recv_address + rank * stride, None if received is None else received[rank], offset,
                      area.place(rank, piece), nbytes)
        area.end()
        offset += nbytes
        if offset >= total:
            break
    return 0


cdef int alltoall(Area area, CollectiveCall call) except -1:
    cdef size_t total = call.recv_count * call.recv_type.size
    cdef size_t stride = call.recv_count * call.recv_type.extent
    cdef size_t part = part_of(area, total, 8), piece = part * (area.size - 1), offset = 0, nbytes
    cdef size_t source = call.recv_address if call.send_in_place else call.send_address
    cdef Py_ssize_t count = call.recv_count if call.send_in_place else call.send_count
    cdef Typemap typemap = call.recv_type if call.send_in_place else call.send_type
    cdef size_t source_stride = count * typemap.extent, own = count * typemap.size
    cdef list sent = None
    cdef list received = None
    cdef char *place
    cdef int rank
    if not typemap.contiguous:
        sent = [convertor_for(source + rank * source_stride, count, typemap) for rank in range(area.size)]
    if not call.recv_type.contiguous:
        received = [convertor_for(call.recv_address + rank * stride, call.recv_count, call.recv_type)
                    for rank in range(area.size)]
    while True:
        nbytes = min(part, total - offset)
        place = area.claim(piece)
        for rank in range(area.size):
            if rank != area.rank and own == total:
                load(source + rank * source_stride, None if sent is None else sent[rank], offset,
                     place + slot(rank, area.rank) * part, nbytes)
        area.put_up(own)
        if offset == 0 and own == total and not call.send_in_place:
            copy_own(source + area.rank * source_stride, None if sent is None else sent[area.rank],
                     call.recv_address + area.rank * stride, None if received is None else received[area.rank], total)
        meet_both(area, own, total)
        for rank in range(area.size):
            if rank != area.rank:
                store(call.recv_address + rank * stride, None if received is None else received[rank], offset,
                      area.place(rank, piece) + slot(area.rank, rank) * part, nbytes)
        area.end()
        offset += nbytes
        if offset >= total:
            break
    return 0


cdef int copy_own(size_t source, Convertor sent, size_t target, Convertor received, size_t total) except -1:
    cdef bytearray packed
    if sent is None:
        return store(target, received, 0, <char *> source, total)
    if received is None:
        return load(source, sent, 0, <char *> target, total)
    packed = bytearray(total)
    load(source, sent, 0, <char *> packed, total)
    return store(target, received, 0, <char *> packed, total)
