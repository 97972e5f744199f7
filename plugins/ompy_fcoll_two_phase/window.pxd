# What the ranks of a file share while they move its bytes window by window.
from libc.stdint cimport int64_t

from ompy.core.communicator cimport Communicator
from ompy.core.segment cimport Segment
from ompy_fcoll_two_phase.fingerprint cimport Fingerprint

cdef enum:
    PAGE = 4096

# What a rank tells the others of a window: of its pieces before they are exchanged, of what it has read for all afterwards.
cdef struct Row:
    int64_t first, end
    int64_t nbytes
    int64_t fingerprint
    int64_t following                            # where its next piece behind the window begins
    int64_t failed                               # error class of what it could not do last


cdef class Window:
    cdef Communicator communicator
    cdef bint shared                             # by memory; else each mover has its part for itself
    cdef Segment segment                         # the file's bytes, from the beginning of a page of the file on; or
    cdef char *own                               # this rank's part of them, from its beginning on
    cdef Py_ssize_t size                         # bytes of the file that it is for,
    cdef Py_ssize_t part                         # and that one mover can have of them
    # Ranks in the order in which they become movers, one of each host after the other; shared: as they are.
    cdef int *order
    cdef int turn                                # where this rank is in it
    cdef int worth                               # movers that are as many as the machine is worth
    cdef Row *rows                               # in rank order
    cdef Fingerprint fingerprint

    # By all ranks together, once: `order`, `turn`, `worth`.
    cdef int meet_hosts(self) except -1
    cdef bint has_room(self, Py_ssize_t size, Py_ssize_t part) noexcept
    # Memory for so many bytes of the file, of which no mover has more than `part`, the same on all ranks; False on all where
    # it can't be had.
    cdef bint make_room(self, Py_ssize_t size, Py_ssize_t part) except -1
    # All ranks' rows, by all of them together.
    cdef int gather_rows(self, const Row *mine) except -1
    # By all ranks together: none goes on before all are here.
    cdef int meet(self) except -1
    cdef int close(self) except -1
