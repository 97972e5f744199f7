# What a collective's steps have in common: how a contribution is cut, and what happens when ranks disagree on its length.
from ompy_coll_sm.area cimport SHORT, Area

cdef inline size_t piece_of(size_t total, size_t limit) noexcept:
    """Bytes of each piece of a contribution: all of a short one."""
    return total if total <= SHORT else limit


cdef inline size_t whole(size_t limit, Py_ssize_t size) noexcept:
    """The largest multiple of an element's size."""
    return limit - limit % size


# Every rank's contribution of the present step is there and of this length; otherwise all ranks find out and stop alike.
cdef int meet(Area area, size_t total) except -1
# Raises when a rank, unless it is -1, was seen to take part with another length than this one.
cdef int differs(Area area, int rank, size_t total) except -1
cdef object too_long(int rank, size_t length, size_t room)
