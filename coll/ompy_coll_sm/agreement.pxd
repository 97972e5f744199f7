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


# Every rank's contribution of the present step is there and of this length, which is what this rank takes from each; otherwise
# all ranks find out and stop alike.
cdef int meet(Area area, size_t total) except -1
# Where data go one way: a rank of the first `count`, other than this one, whose contribution of the present step is there and
# of another length, or -1.
cdef int one_that_differs(Area area, size_t total, int count) except -2
# So that all take as many steps: whoever needs more than one looks, in the first, at every rank's length, and takes no more
# where one differs.  Who else contributes nothing puts its length up there if it needs more, or has seen one that differs.
cdef int agree_on_steps(Area area, size_t total) except -1
# Raises when a rank, unless it is -1, was seen to take part with another length than this one.
cdef int differs(Area area, int rank, size_t total) except -1
# Raises when a root keeps another length for itself than it exchanges with each of the others.
cdef int check_own(Area area, size_t own, size_t total) except -1
cdef object too_long(int rank, size_t length, size_t room)
