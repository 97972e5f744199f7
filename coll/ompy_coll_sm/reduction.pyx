# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=--param=max-inline-insns-single=200 --param=max-inline-insns-auto=30
"""Collectives that reduce.

A reduction of ranks 0 to 3 is always a0 op (a1 op (a2 op a3)), whoever came first, so results are the same on every rank
and in every run.
"""

from ompy.core.copying cimport copy_bytes
from ompy.core.operation cimport Operation
from ompy.core.typemap cimport Typemap

from ompy_coll_sm.agreement cimport (
    differs,
    meet,
    one_of_all_that_differs,
    one_that_differs,
    part_of,
    piece_of,
    put_up_one_way,
    slot,
    whole,
)
from ompy_coll_sm.area cimport SHORT

# Bytes that are reduced over all ranks at a time: what stays in the first cache meanwhile.
cdef size_t STRIP = 16384


cdef int fold(Area area, char *target, const char *own, size_t low, size_t part, size_t nbytes, size_t contribution,
              int count, Typemap typemap, Operation operation) except -1:
    """Reduce the operands of ranks 0 to `count - 1` into target, rightmost first.

    Parameters:
        own: this rank's operand, which need not be put up; not the target, unless it is the rightmost.
        low: offset of the bytes wanted in the others' contributions,
        part: and that times their slot for this rank.
        nbytes: wanted.
        contribution: bytes of a contribution, which say where it stands.
    """
    cdef size_t strip = whole(STRIP, typemap.size), start = 0, length
    cdef const char *operand
    cdef int rank
    while True:
        length = min(strip, nbytes - start)
        for rank in range(count - 1, -1, -1):
            if rank == area.rank:
                operand = own + start
            else:
                operand = area.look_at(rank, contribution) + low + slot(area.rank, rank) * part + start
            if rank < count - 1:
                operation.reduce(<char *> operand, target + start, length // typemap.size, typemap)
            elif operand != target + start:
                copy_bytes(target + start, operand, length)
        start += length
        if start >= nbytes:
            break
    return 0


cdef int reduce(Area area, CollectiveCall call) except -1:
    cdef bint in_place = call.send_in_place
    cdef Typemap typemap = call.recv_type if in_place else call.send_type
    cdef size_t total = (call.recv_count if in_place else call.send_count) * typemap.size
    cdef size_t piece = piece_of(total, whole(area.chunk, typemap.size)), offset = 0, nbytes
    cdef size_t source = call.recv_address if in_place else call.send_address
    cdef bint is_root = area.rank == call.root
    # In place the result overwrites this rank's operand, which may be needed after that.
    cdef bint copies = in_place or not is_root
    cdef const char *own
    cdef char *place
    cdef int other = -1
    while True:
        nbytes = min(piece, total - offset)
        place = area.claim(piece if copies else 0)
        own = <const char *> (source + offset)
        if copies:
            copy_bytes(place, own, nbytes)
            own = place
        put_up_one_way(area, not is_root, total, piece, offset)
        if is_root:
            other = one_of_all_that_differs(area, total)
            if other < 0:
                fold(area, <char *> (call.recv_address + offset), own, 0, 0, nbytes, piece, area.size, typemap, call.operation)
        area.end()
        offset += nbytes
        if offset >= total:
            break
    return differs(area, other, total)


cdef int allreduce(Area area, CollectiveCall call) except -1:
    cdef Typemap typemap = call.recv_type if call.send_in_place else call.send_type
    cdef size_t total = (call.recv_count if call.send_in_place else call.send_count) * typemap.size
    cdef size_t source = call.recv_address if call.send_in_place else call.send_address
    cdef const char *own = <char *> source
    cdef char aside[SHORT]
    if total > SHORT:
        return allreduce_long(area, source, call.recv_address, total, typemap, call.operation)
    copy_bytes(area.claim(total), own, total)
    area.put_up(total)
    if source == call.recv_address:
        # The result overwrites this rank's operand, which may be needed after that.
        copy_bytes(aside, own, total)
        own = aside
    meet(area, total)
    fold(area, <char *> call.recv_address, own, 0, 0, total, total, area.size, typemap, call.operation)
    return area.end()


cdef int allreduce_long(Area area, size_t source, size_t target, size_t total, Typemap typemap,
                        Operation operation) except -1:
    """Each rank reduces its slice of a piece, leaves it where its contribution would stand, and takes the others' slices.

        piece of rank 0   | .. b0 c0 |      then     | A .. .. |        A = a0 op a1 op a2
        piece of rank 1   | a1 .. c1 |               | .. B .. |
        piece of rank 2   | a2 b2 .. |               | .. .. C |
    """
    cdef size_t piece = piece_of(total, whole(area.chunk, typemap.size)), offset = 0, nbytes, low, high
    cdef Py_ssize_t elements
    cdef const char *own
    cdef char *place
    cdef int rank
    while True:
        nbytes = min(piece, total - offset)
        elements = nbytes // typemap.size
        low = elements * area.rank // area.size * typemap.size
        high = elements * (area.rank + 1) // area.size * typemap.size
        place = area.claim(piece)
        copy_bytes(place, <char *> (source + offset), low)
        copy_bytes(place + high, <char *> (source + offset + high), nbytes - high)
        own = <char *> (source + offset + low)
        if source == target:
            # The result overwrites this rank's operand, which may be needed after that.
            copy_bytes(place + low, own, high - low)
            own = place + low
        area.put_up(total)
        meet(area, total)
        if high > low:
            fold(area, <char *> (target + offset + low), own, low, 0, high - low, piece, area.size, typemap, operation)
            copy_bytes(place + low, <char *> (target + offset + low), high - low)
        area.put_up_second()
        for rank in range(area.size):
            if rank == area.rank:
                continue
            area.look_at_second(rank)
            low = elements * rank // area.size * typemap.size
            high = elements * (rank + 1) // area.size * typemap.size
            copy_bytes(<char *> (target + offset + low), area.place(rank, piece) + low, high - low)
        area.end()
        offset += nbytes
        if offset >= total:
            break
    return 0


cdef int reduce_scatter_block(Area area, CollectiveCall call) except -1:
    """Each rank puts up a part for each of the others, and reduces what is meant for it."""
    cdef Typemap typemap = call.recv_type
    cdef size_t total = call.recv_count * typemap.size
    cdef size_t source = call.recv_address if call.send_in_place else call.send_address
    cdef size_t part = part_of(area, total, typemap.size), piece = part * (area.size - 1), offset = 0, nbytes
    cdef bytearray saved = bytearray(part) if call.send_in_place else None
    cdef const char *own
    cdef char *place
    cdef int rank
    while True:
        nbytes = min(part, total - offset)
        place = area.claim(piece)
        for rank in range(area.size):
            if rank != area.rank:
                copy_bytes(place + slot(rank, area.rank) * part, <char *> (source + rank * total + offset), nbytes)
        area.put_up(total)
        own = set_aside(saved, <char *> (source + area.rank * total + offset), nbytes)
        meet(area, total)
        fold(area, <char *> (call.recv_address + offset), own, 0, part, nbytes, piece, area.size, typemap, call.operation)
        area.end()
        offset += nbytes
        if offset >= total:
            break
    return 0


cdef int reduce_scatter(Area area, CollectiveCall call) except -1:
    """As `reduce_scatter_block`, in as many steps as the longest block asks for."""
    cdef Typemap typemap = call.recv_type
    cdef size_t source = call.recv_address if call.send_in_place else call.send_address
    cdef size_t longest = 0, own_length = call.recv_counts[area.rank] * typemap.size, own_begin = 0
    cdef size_t part, piece, offset = 0, begin, length, nbytes
    cdef bytearray saved
    cdef const char *own
    cdef char *place
    cdef int rank
    for rank in range(area.size):
        longest = max(longest, <size_t> (call.recv_counts[rank] * typemap.size))
        if rank < area.rank:
            own_begin += call.recv_counts[rank] * typemap.size
    part = part_of(area, longest, typemap.size)
    piece = part * (area.size - 1)
    saved = bytearray(part) if call.send_in_place else None
    while True:
        place = area.claim(piece)
        begin = 0
        for rank in range(area.size):
            length = call.recv_counts[rank] * typemap.size
            if rank != area.rank and offset < length:
                copy_bytes(place + slot(rank, area.rank) * part, <char *> (source + begin + offset), min(part, length - offset))
            begin += length
        area.put_up(longest)
        nbytes = min(part, own_length - offset) if offset < own_length else 0
        own = set_aside(saved, <char *> (source + own_begin + offset), nbytes)
        meet(area, longest)
        if nbytes:
            fold(area, <char *> (call.recv_address + offset), own, 0, part, nbytes, piece, area.size, typemap,
                 call.operation)
        area.end()
        offset += part
        if offset >= longest:
            break
    return 0


cdef inline const char *set_aside(bytearray saved, const char *operand, size_t nbytes) noexcept:
    """The operand, or a copy where the result may overwrite it before it is needed."""
    if saved is None:
        return operand
    copy_bytes(<char *> saved, operand, nbytes)
    return <char *> saved


cdef int scan(Area area, CollectiveCall call, bint inclusive) except -1:
    """Nobody needs what the last rank has."""
    cdef Typemap typemap = call.recv_type if call.send_in_place else call.send_type
    cdef size_t total = (call.recv_count if call.send_in_place else call.send_count) * typemap.size
    cdef size_t source = call.recv_address if call.send_in_place else call.send_address
    cdef size_t piece = piece_of(total, whole(area.chunk, typemap.size)), offset = 0, nbytes
    cdef int count = area.rank + 1 if inclusive else area.rank, other = -1
    cdef bint is_last = area.rank == area.size - 1
    cdef char *place
    while True:
        nbytes = min(piece, total - offset)
        place = area.claim(0 if is_last else piece)
        if not is_last:
            copy_bytes(place, <char *> (source + offset), nbytes)
        put_up_one_way(area, not is_last, total, piece, offset)
        other = one_of_all_that_differs(area, total) if is_last else one_that_differs(area, total, count)
        if count > 0 and other < 0:
            fold(area, <char *> (call.recv_address + offset), <char *> (source + offset), 0, 0, nbytes, piece, count, typemap,
                 call.operation)
        area.end()
        offset += nbytes
        if offset >= total:
            break
    return differs(area, other, total)
