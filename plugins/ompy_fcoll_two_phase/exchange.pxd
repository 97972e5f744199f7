# One rank's part of a collective access that goes through the window:
#
#     file      |AABBAABB AABBAABB|AABB...        A, B: pieces of ranks 0 and 1
#     window    |AABBAABB AABBAABB|               shared memory: the file's bytes at their places
#     parts     |-- rank 0 -|-- rank 1 -|         each rank moves a part between the window and the file, as it is
#
# To write, every rank's convertor puts its pieces into the window, and then the parts are written; to read, the parts are
# read, and every rank's convertor picks its pieces out: one copy, and no message.  The ranks agree on each window by one
# allgather of a Row each; where one window is enough, what they have told one another before does.  Ranks on several hosts
# have no such memory: `message_exchange.pxd`.
#
# A window without holes, as its pieces' fingerprint shows, is written as it is.  One with holes is read first, where nobody
# else can write to them meanwhile; else each rank writes its own pieces.
from libc.stdint cimport int64_t

from ompy.core.convertor cimport Convertor
from ompy.core.file cimport Access, File
from ompy.mca.fbtl cimport FbtlModule
from ompy_fcoll_two_phase.fingerprint cimport Fingerprint
from ompy_fcoll_two_phase.window cimport Row, Window


# How windows are written, the same on all ranks.
cdef struct Manner:
    bint fills_holes                             # nobody else writes to them meanwhile,
    bint locks                                   # because every part is written under a lock
    int movers                                   # ranks that have a part: the first ones of `Window.order`


# Bytes that follow in a view: the first one's offset, the end of the last, and the fingerprint where there is one to make.
cdef int describe(Convertor cursor, Py_ssize_t nbytes, Fingerprint fingerprint, int64_t origin, Row *row) noexcept nogil
# What a rank raises when another one has told it of an error.
cdef object failure_of(File file, Access access, int rank, int64_t code)


cdef class Exchange:
    cdef Window window
    cdef File file
    cdef FbtlModule fbtl
    cdef Access access
    cdef Manner manner
    cdef Convertor cursor, probe                 # over the view
    cdef Convertor memory                        # None where memory is one run
    cdef char *packed                            # of a window's data, where it is not
    cdef Py_ssize_t done                         # bytes of this rank's data
    cdef Py_ssize_t mine                         # of them in the window
    cdef int64_t origin                          # of the window's first byte, in the file
    cdef int64_t low, high                       # from the first piece in the window to the end of the last
    cdef int64_t following                       # where the next window begins
    cdef bint tiled                              # the window has no holes
    cdef object problem                          # what went wrong here, or None

    # From the first byte of any rank's to the end of the last.  `told`: all of it fits into one window, and the window has the
    # rows of all ranks already.
    cdef Py_ssize_t run(self, int64_t start, int64_t end, Py_ssize_t size, bint told) except -1

    # Tell the others what this rank has between two offsets, and learn what there is to move.
    cdef int agree_on(self, int64_t stop) except -1
    # What there is to move, by all ranks' rows.
    cdef int sum_up(self) noexcept nogil
    cdef int write_together(self) except -1
    cdef int write_own(self) except -1
    cdef int read_together(self) except -1
    # The part of the window that a mover moves to or from the file; returns where in the file its first page begins.
    cdef int64_t part(self, int mover, int64_t *low, int64_t *high) noexcept nogil
    # This rank's part, and the memory where it is put together.
    cdef char *image(self, int64_t *low, int64_t *high) noexcept nogil
    # The next bytes of this rank's data: in its memory, or where they are packed.
    cdef char *data(self) noexcept nogil
    # This rank's pieces, to or from the window.
    cdef int move_pieces(self, bint packing) except -1
    # All images are as they were, or have all pieces.
    cdef int meet(self) except -1
    cdef int raise_failures(self) except -1
