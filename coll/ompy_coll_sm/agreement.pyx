# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=--param=max-inline-insns-single=200 --param=max-inline-insns-auto=30
"""Ranks that take part in a collective with different lengths are told so."""
from ompy.core.errors import ERR_TRUNCATE, MPIError


cdef int meet(Area area, size_t total) except -1:
    """Every rank's contribution is there and of this length; otherwise all ranks find out here and stop alike."""
    cdef int rank, other = -1
    for rank in range(area.size):
        if rank != area.rank and area.length_of(rank) != total:
            other = rank
    area.met()
    if other >= 0:
        length = area.line(other).length
        area.end()
        raise MPIError(ERR_TRUNCATE, f"rank {other} has {length} bytes in this collective, rank {area.rank} has {total}")
    return 0


cdef int meet_both(Area area, size_t own, size_t total) except -1:
    meet(area, total)
    if own != total:
        area.end()
    return check_own(area, own, total)


cdef int put_up_one_way(Area area, bint contributes, size_t total, size_t piece, size_t offset) except -1:
    cdef bint begins_several = offset == 0 and piece < total
    cdef int other
    if contributes or begins_several:
        area.put_up(total)
    if begins_several:
        other = one_that_differs(area, total, area.size)
        if other >= 0:
            area.end()
        differs(area, other, total)
    return 0


cdef int one_that_differs(Area area, size_t total, int count) except -2:
    cdef int rank, other = -1
    for rank in range(count):
        if rank != area.rank and area.length_of(rank) != total:
            other = rank
    return other


cdef int one_of_all_that_differs(Area area, size_t total) except -2:
    cdef int other = one_that_differs(area, total, area.size)
    area.met()
    if other >= 0:
        area.put_up(total)
    return other


cdef int differs(Area area, int rank, size_t total) except -1:
    """Raises when a rank, unless it is -1, was seen to take part with another length than this one."""
    if rank >= 0:
        raise MPIError(ERR_TRUNCATE, f"rank {rank} has another length in this collective than rank {area.rank}, which has "
                                     f"{total} bytes")
    return 0


cdef int check_own(Area area, size_t own, size_t total) except -1:
    if own != total:
        raise MPIError(ERR_TRUNCATE, f"{own} bytes on one side and {total} on the other of what rank {area.rank} has for "
                                     "itself")
    return 0


cdef object too_long(int rank, size_t length, size_t room):
    return MPIError(ERR_TRUNCATE, f"{length} bytes from rank {rank}, but there is room for {room} bytes")
