# Collective accesses of ranks that know of one another: first they agree whether to put their pieces together, in shared memory
# (`exchange.pxd`) or by messages (`message_exchange.pxd`), by what each is about to do.
from libc.stdint cimport int64_t

from ompy.core.file cimport Access
from ompy.mca.fcoll cimport FcollModule
from ompy_fcoll_two_phase.exchange cimport Manner
from ompy_fcoll_two_phase.window cimport Window


# What a rank says of itself.
cdef struct Plan:
    int64_t first, end                           # of its bytes in the file
    int64_t nbytes
    int64_t traits                               # Trait, or'ed together
    int64_t window                               # bytes of the file that it would take at a time
    int64_t part                                 # of them, for one mover where each has its own memory
    int64_t movers                               # ranks that move them between memory and file
    int64_t fingerprint                          # of its pieces, from the page of its first byte on; where it is WHOLE
    int64_t failed                               # code of the error that keeps it from taking part

cdef enum Trait:
    ORDERED = 1                                  # its offsets grow
    SHORT = 2                                    # its pieces are short
    TINY = 512                                   # or so short that gaps between them are not read along straight to memory
    MAPPED = 1024                                # or there are none, or they are copies to and from the file's pages (fbtl.pxd)
    QUIET = 4                                    # nothing but this access is under way
    READABLE = 256                               # it may read the file, to write it back
    WHOLE = 128                                  # all of it fits into the window, and nothing is left to prepare
    # Of the hints, which are the same on all ranks.
    GATHERED = 8                                 # to go through shared memory,
    APART = 16                                   # or not to; neither: as it suits
    LOCKED = 32                                  # holes are read and written back under locks,
    ALONE = 64                                   # or without, because nobody else has the file open


cdef class TwoPhase(FcollModule):
    cdef Py_ssize_t long_piece, read_twice
    cdef Window window
    cdef Plan *plans                             # in rank order

    cdef Py_ssize_t move_all(self, Access access) except -1
    cdef int plan(self, Access access, Plan *mine) except -1
    # Whether the ranks go through the window: the same answer on all of them.
    cdef bint is_gathered(self, const Plan *mine, bint writing, int64_t start, int64_t end) noexcept
    # Whether the plans tell all of the one window that is enough; it has the rows then.
    cdef bint is_told(self, int64_t start, int64_t end) noexcept
    cdef Manner manner(self, const Plan *mine) noexcept
