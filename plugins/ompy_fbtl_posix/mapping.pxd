# The part of a file that a process moves again and again, as pages of its memory.
#
#     file       |......|##########|......|       accesses meet the same part, time after time: it is mapped,
#     pages             |##########|              and what meets it from then on is copied to and from its pages:
#     memory               ####                   no calls, gaps cost nothing, and processes write at the same time
#
# A call for each piece is dear, and file systems such as ext4 let one process at a time write to a file.  But a page costs
# more than either when it is touched for the first time, and again when the kernel has written it to the device: what is moved
# once, and what is too large to come by often, is not worth it.
#
# Bytes of gaps are not touched, so that nobody else's need be written back.  A page that the kernel can't give (the file was
# cut off, the device is full or broken) ends a copy (`refuge.pxd`); the caller moves the bytes by calls, which say what is
# wrong.
from ompy.core.convertor cimport Convertor

cdef enum:
    # Of the file, bytes.
    MOST = 1 << 30


cdef class Mapping:
    cdef int descriptor
    cdef Py_ssize_t shortest                     # bytes of an access that is worth it
    cdef int times                               # that a part has been met before it is
    cdef bint possible                           # as far as is known
    cdef bint writable
    cdef bint changed                            # through the pages
    cdef char *pages                             # NULL: nothing is mapped
    cdef Py_ssize_t start, end                   # of the pages, in the file
    cdef Py_ssize_t low, high                    # a part that accesses have met
    cdef int met                                 # how often it was all that they met
    cdef int users                               # threads between `enter` and `leave`

    # Whether an access of `nbytes` bytes of data in so many of the file from `first` on can be a copy: what asks counts it.
    cdef bint covers(self, Py_ssize_t first, Py_ssize_t reach, Py_ssize_t nbytes) except -1
    # The same, and the pages stay until `leave`.
    cdef bint enter(self, Py_ssize_t first, Py_ssize_t reach, Py_ssize_t nbytes) except -1
    cdef int leave(self) noexcept
    # Between the two: bytes that lie together, or a view's next ones.  False where a page was not to be had; the cursor is of
    # no use any more then.
    cdef bint move(self, char *memory, Py_ssize_t nbytes, Py_ssize_t offset, bint reading) noexcept nogil
    cdef bint move_pieces(self, Convertor cursor, char *memory, Py_ssize_t nbytes, bint reading) noexcept nogil
    cdef int map(self) except -1
    cdef int close(self) except -1
