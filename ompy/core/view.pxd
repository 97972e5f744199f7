# Which bytes of a file a process sees, and in which order (MPI-4.1, 14.3).
#
#     file         |......|##..#.|##..#.|##..#.|...     the filetype, again and again from the displacement on
#     view                 01  2  34  5  67  8          positions: bytes of data, counted from the view's start
#
# A view is a typemap run by a convertor whose addresses are offsets in the file.  Nothing is ever listed: a view of 10^9 pieces
# takes as much memory as its filetype does.
from ompy.core.convertor cimport Convertor
from ompy.core.program cimport Step
from ompy.core.typemap cimport Typemap

cdef class View:
    cdef readonly Py_ssize_t displacement        # where it begins, in bytes of the file
    cdef readonly Typemap etype, filetype        # as they lie in the file, in its data representation
    cdef readonly object representation          # the MPI layer's; None: the program's bytes are the file's
    cdef readonly bint contiguous                # position n is byte displacement + n of the file
    cdef readonly bint ordered                   # offsets grow with positions: no two pieces overlap
    cdef public bint plain                       # so are those of the file's other ranks: who opened it has agreed on that
    cdef const Step *steps                       # of the filetype's program, which keeps them
    cdef const Step *bodies
    cdef int count
    cdef Py_ssize_t tiles                        # filetypes that fit below the largest offset

    # A convertor whose addresses are offsets in the file, at a position of the view.
    cdef Convertor cursor(self, Py_ssize_t position)
    # Where in the file a byte of the view is.
    cdef Py_ssize_t offset_of(self, Py_ssize_t position) except -1
    # Bytes of the view that lie before an offset in the file.  Only of an `ordered` one.
    cdef Py_ssize_t position_of(self, Py_ssize_t offset) noexcept nogil
    # Bytes of the file from the first to the last of some bytes of the view (of more than none); `first` is where they begin.
    cdef Py_ssize_t reach(self, Py_ssize_t position, Py_ssize_t nbytes, Py_ssize_t *first) except -1
