# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Views of files: positions in the data, and where in the file they are.  See `view.pxd`."""
from ompy.core.convertor cimport Convertor
from ompy.core.program cimport Program, Step
from ompy.core.typemap cimport Typemap

from ompy.core.errors import ERR_ARG, ERR_TYPE, MPIError

# No file has an offset from here on.
cdef Py_ssize_t FARTHEST = 1 << 62


cdef inline Py_ssize_t lowest(const Step *bodies, const Step *step) noexcept nogil:
    """Where the first byte of a step is, in the enclosing round."""
    cdef Py_ssize_t offset = step.offset
    while step.body:
        step = &bodies[step.first]
        offset += step.offset
    return offset


cdef bint is_ordered(const Step *bodies, const Step *steps, int count, Py_ssize_t *end) noexcept nogil:
    """Whether every byte lies behind the one before; `end` is where the last one ends, in the enclosing round."""
    cdef const Step *step
    cdef Py_ssize_t here = 0, within = 0
    cdef int i
    for i in range(count):
        step = &steps[i]
        if i > 0 and lowest(bodies, step) < here:
            return False
        within = step.length
        if step.body and not is_ordered(bodies, &bodies[step.first], step.body, &within):
            return False
        here = step.offset + within
        if step.count > 1:
            if lowest(bodies, step) + step.stride < here:
                return False
            here += (step.count - 1) * step.stride
    end[0] = here
    return True


cdef class View:
    """A view of a file (MPI-4.1, 14.3).

    Parameters:
        displacement: bytes of the file before it.
        etype, filetype: as they lie in the file.
        representation: what the MPI layer converts by, or None.

    Errors: ERR_ARG for a negative displacement; ERR_TYPE for a filetype without data, with data before its displacement, or
    that is not made of etypes.
    """

    def __init__(self, Py_ssize_t displacement, Typemap etype not None, Typemap filetype not None, representation=None):
        cdef Program program = filetype.program
        cdef Py_ssize_t end = 0, step
        if not 0 <= displacement < FARTHEST:
            raise MPIError(ERR_ARG, f"disp: a number of bytes from 0 on expected, not {displacement}")
        if etype.size == 0 or filetype.size == 0:
            raise MPIError(ERR_TYPE, "etype, filetype: a type that has data expected")
        if filetype.size % etype.size:
            raise MPIError(ERR_TYPE, f"filetype: its {filetype.size} bytes of data are not whole etypes of {etype.size} bytes")
        if filetype.true_lower_bound < 0 or filetype.extent < 0:
            raise MPIError(ERR_TYPE, "filetype: none of its data may lie before the view's displacement")
        self.displacement = displacement
        self.etype = etype
        self.filetype = filetype
        self.representation = representation
        self.contiguous = filetype.contiguous
        self.steps, self.bodies, self.count = program.roots, program.bodies, program.root_count
        self.ordered = is_ordered(self.bodies, self.steps, self.count, &end) \
            and lowest(self.bodies, self.steps) + filetype.extent >= end
        step = max(filetype.extent, filetype.true_extent, filetype.size)
        self.tiles = (FARTHEST - displacement) // step

    cdef Convertor cursor(self, Py_ssize_t position):
        cdef Convertor convertor = Convertor.__new__(Convertor)
        convertor.prepare(<char *> self.displacement, self.tiles, self.filetype)
        convertor.seek(position)
        return convertor

    cdef Py_ssize_t offset_of(self, Py_ssize_t position) except -1:
        cdef char *place = NULL
        cdef Convertor convertor
        if position < 0 or position >= self.tiles * self.filetype.size:
            raise MPIError(ERR_ARG, f"byte {position} of the view is farther than an offset can tell")
        if self.contiguous:
            return self.displacement + position
        convertor = self.cursor(position)
        convertor.stretch(&place)
        return <Py_ssize_t> place

    cdef Py_ssize_t position_of(self, Py_ssize_t offset) noexcept nogil:
        cdef const Step *bodies = self.bodies
        cdef const Step *steps = self.steps
        cdef const Step *step
        cdef Py_ssize_t first = lowest(bodies, steps), position, rounds
        cdef int count = self.count, low, high, middle
        offset -= self.displacement
        if self.contiguous:
            return max(0, offset)
        if offset <= first:
            return 0
        rounds = min((offset - first) // self.filetype.extent, self.tiles - 1)
        position = rounds * self.filetype.size
        offset -= rounds * self.filetype.extent
        # Down to the innermost block that begins at the offset or before.
        while True:
            low = 0
            high = count
            while high - low > 1:
                middle = (low + high) // 2
                if lowest(bodies, &steps[middle]) <= offset:
                    low = middle
                else:
                    high = middle
            step = &steps[low]
            position += step.start
            if step.count > 1:
                rounds = min(max(0, (offset - lowest(bodies, step)) // step.stride), step.count - 1)
                position += rounds * step.length
                offset -= rounds * step.stride
            offset -= step.offset
            if step.body == 0:
                return position + min(max(0, offset), step.length)
            steps = &bodies[step.first]
            count = step.body

    cdef Py_ssize_t reach(self, Py_ssize_t position, Py_ssize_t nbytes, Py_ssize_t *first) except -1:
        if not self.ordered:
            first[0] = self.displacement             # the first and the last byte don't tell
            return FARTHEST - self.displacement
        first[0] = self.offset_of(position)
        if self.contiguous:
            return nbytes
        return self.offset_of(position + nbytes - 1) + 1 - first[0]

    def offset(self, Py_ssize_t position) -> int:
        """Where in the file a byte of the view is.  Errors: ERR_ARG for one that no offset tells."""
        return self.offset_of(position)

    def position(self, Py_ssize_t offset) -> int:
        """Bytes of the view before an offset in the file.  Errors: ERR_TYPE where pieces overlap or go back."""
        if not self.ordered:
            raise MPIError(ERR_TYPE, "filetype: its displacements are not ascending, so no offset divides the view")
        return self.position_of(offset)

    def pieces(self, Py_ssize_t position, Py_ssize_t nbytes):
        """(offset, length) of the pieces of the file that some bytes of the view are, one after the other, for components in
        plain Python."""
        cdef Convertor convertor = self.cursor(position)
        cdef char *place = NULL
        cdef Py_ssize_t length
        while nbytes > 0:
            length = min(convertor.stretch(&place), nbytes)
            yield <Py_ssize_t> place, length
            convertor.seek(convertor.position + length)
            nbytes -= length
