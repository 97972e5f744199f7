# What a collective's steps have in common: how a contribution is cut, and what happens when ranks disagree on its length.
from ompy_coll_sm.area cimport SHORT, Area

cdef inline size_t piece_of(size_t total, size_t limit) noexcept:
    """Bytes of each piece of a contribution: all of a short one."""
    return total if total <= SHORT else min(total, limit)


cdef inline size_t whole(size_t limit, Py_ssize_t size) noexcept:
    """The largest multiple of an element's size."""
    return limit - limit % size


cdef inline int slot(int rank, int owner) noexcept:
    """Which part of its owner's contribution is meant for the rank, where there is one for each *other* rank."""
    return rank - (rank > owner)


cdef inline size_t part_of(Area area, size_t total, Py_ssize_t size) noexcept:
    """Bytes of each such part that go in one step, in elements of so many bytes."""
    cdef size_t others = area.size - 1
    return total if total * others <= SHORT else min(total, whole(area.chunk // others, size))


# Every rank's contribution of the present step is there and of this length; otherwise all ranks find out and stop alike.
cdef int meet(Area area, size_t total) except -1
# The same of a rank that has put up `own` bytes, and is to take `total` from each.
cdef int meet_both(Area area, size_t own, size_t total) except -1

# Where data go one way all are to take as many steps.  Whoever needs more than one looks, in the first, at every rank's length,
# and takes no more where one differs; so does a rank that takes one step, and sees all.  Who contributes nothing puts its
# length up only where it needs more steps, or has seen one that differs.
#
# What this rank has claimed a place for is there; of a rank that needs more steps all lengths are alike.
cdef int put_up_one_way(Area area, bint contributes, size_t total, size_t piece, size_t offset) except -1
# A rank of the first `count`, other than this one, whose contribution of the present step is of another length, or -1.
cdef int one_that_differs(Area area, size_t total, int count) except -2
# The same of all, for the rank that takes from all and contributes nothing.
cdef int one_of_all_that_differs(Area area, size_t total) except -2
# Raises when a rank, unless it is -1, was seen to take part with another length than this one.
cdef int differs(Area area, int rank, size_t total) except -1
# Raises when a root keeps another length for itself than it exchanges with each of the others.
cdef int check_own(Area area, size_t own, size_t total) except -1
cdef object too_long(int rank, size_t length, size_t room)
