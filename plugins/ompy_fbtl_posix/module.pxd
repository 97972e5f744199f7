# One process's bytes to and from a descriptor.
#
# A view with gaps is moved window by window.  A window's pieces go one by one where they are long or far apart; otherwise the
# window is read as it is and the view's convertor, aimed at the copy, picks the pieces out ("data sieving"):
#
#     file      ..##...##...##...##..       pread      |##...##...##...##|  window
#                                           convertor  |########|           the program's memory
#
# Pieces that are not quite short are read by one preadv, straight to the program's memory, and gaps to where nobody looks.
#
# To write, the pieces are put into the copy, which goes back as a whole: that needs the file for itself.
#
# A part of the file that is moved again and again is mapped, and none of this done for it (`mapping.pxd`).
from ompy.core.convertor cimport Convertor
from ompy.core.file cimport Access
from ompy.mca.fbtl cimport FbtlModule
from ompy_fbtl_posix.mapping cimport Mapping


cdef class Posix(FbtlModule):
    cdef Py_ssize_t distance
    cdef Mapping mapping

    # Bytes that lie together in memory and in the file; returns how many, or -errno.
    cdef Py_ssize_t move_run(self, char *memory, Py_ssize_t length, Py_ssize_t offset, bint reading) except? -1
    cdef Py_ssize_t move(self, Access access) except -1


# One access with gaps, under way.
cdef class Transfer:
    cdef int descriptor
    cdef Access access
    cdef Convertor cursor, probe                 # over the view: where the transfer is, and for a look ahead
    cdef Convertor memory                        # None where memory is one run
    cdef char *plain                             # which begins here
    cdef char *window                            # a copy of a part of the file
    cdef char *packed                            # data on the way between the window and memory that is not one run
    cdef Py_ssize_t room                         # bytes of each
    cdef Py_ssize_t distance                     # farthest from piece to piece that a window is made for; 0: none is
    cdef Py_ssize_t done

    cdef int prepare(self, int descriptor, Access access, Py_ssize_t room, Py_ssize_t distance) except -1
    # All of it by copies; False where that can't be, and nothing is done then.
    cdef bint through(self, Mapping mapping) noexcept nogil
    # Bytes moved, or -errno.
    cdef Py_ssize_t run(self) noexcept nogil
    cdef Py_ssize_t look_ahead(self, Py_ssize_t start, Py_ssize_t length, Py_ssize_t *take) noexcept nogil
    cdef Py_ssize_t piece(self, Py_ssize_t start, Py_ssize_t length) noexcept nogil
    # Some of the next bytes of data, as many as one call gets; 0 at the end of the file.
    cdef Py_ssize_t read_pieces(self, Py_ssize_t start, Py_ssize_t span, Py_ssize_t take) noexcept nogil
    cdef Py_ssize_t read_window(self, Py_ssize_t start, Py_ssize_t span, Py_ssize_t take) noexcept nogil
    cdef Py_ssize_t write_window(self, Py_ssize_t start, Py_ssize_t span, Py_ssize_t take) noexcept nogil
