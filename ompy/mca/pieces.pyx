# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The bytes of a target's elements, piece by piece.  See `pieces.pxd`."""
from libc.stdint cimport uint64_t

from ompy.core.convertor cimport Convertor, Run
from ompy.core.typemap cimport Typemap, span

from ompy.core.errors import ERR_RMA_RANGE, MPIError
from ompy.mca.attachments import not_attached


cdef class Pieces:
    """The bytes of a target's elements, piece by piece."""

    cdef Py_ssize_t leave(self, uint64_t start, uint64_t size) noexcept:
        cdef Run run
        cdef Py_ssize_t nbytes = <Py_ssize_t> min(<uint64_t> self.length, start + size - self.address)
        self.convertor.next_run(nbytes, &run)
        self.look()
        return nbytes

    cdef void look(self) noexcept:
        cdef char *place = NULL
        self.length = self.convertor.stretch(&place)
        self.address = <uint64_t> place
        self.position = self.convertor.position


cdef Pieces pieces_of(Py_ssize_t displacement, Py_ssize_t count, Typemap typemap):
    cdef Pieces pieces = Pieces()
    pieces.convertor = Convertor()
    # As one element: those that touch are one block.
    pieces.convertor.prepare(<char *> displacement, 1, typemap.create_contiguous(count))
    pieces.look()
    return pieces


cdef int require_attached(int rank, Py_ssize_t displacement, Py_ssize_t count, Typemap typemap, object holding) except -1:
    cdef Pieces pieces = pieces_of(displacement, count, typemap)
    cdef uint64_t start = 0, size = 0
    while pieces.length:
        if pieces.address - start >= size:
            start, size = holding(pieces.address)
            if size == 0:
                raise MPIError(ERR_RMA_RANGE, not_attached(rank, pieces.address, pieces.length))
        pieces.leave(start, size)
    return 0


cpdef int require_own(int rank, Py_ssize_t displacement, Py_ssize_t count, Typemap typemap, object attachments) except -1:
    """ERR_RMA_RANGE unless this process has attached all of a target's elements."""
    cdef Py_ssize_t first = 0, nbytes = span(typemap, count, &first)
    cdef uint64_t address = <uint64_t> (displacement + first)
    start, size = attachments.holding(address)
    if nbytes > start + size - address:
        require_attached(rank, displacement, count, typemap, attachments.holding)
    return 0
