# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Typemaps of predefined datatypes, and the constructors of derived ones (MPI-4.1, 5.1)."""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from ompy.core.basic cimport BASIC_TYPES, GROUP_PAIR, Basic, basics
from ompy.core.overflow cimport add, multiply, subtract
from ompy.core.program cimport Program

from ompy.core.errors import ERR_ARG, ERR_COUNT, MPIError


cdef Py_ssize_t times(Py_ssize_t number, Py_ssize_t nbytes) except? -1:
    cdef Py_ssize_t product
    if multiply(number, nbytes, &product):
        raise MPIError(ERR_ARG, f"{number} times {nbytes} bytes is farther than an address can tell")
    return product


cdef Py_ssize_t plus(Py_ssize_t offset, Py_ssize_t nbytes) except? -1:
    cdef Py_ssize_t place
    if add(offset, nbytes, &place):
        raise MPIError(ERR_ARG, f"{nbytes} bytes from byte {offset} is farther than an address can tell")
    return place


cdef Typemap begin():
    cdef Typemap made = Typemap.__new__(Typemap)
    made.program = Program.__new__(Program)
    made.empty = True
    made.basic = -1
    made.alignment = 1
    return made


@cython.freelist(64)
cdef class Typemap:
    """See `typemap.pxd`.  Made by the constructors of another one, by `predefined` and by `create_struct`."""

    cdef int place(self, Typemap element, Py_ssize_t offset, Py_ssize_t count, Py_ssize_t stride) except -1:
        """Add `count` elements, `stride` bytes apart, the first at `offset`.

        Bounds given with `create_resized` stick: once an element has them, those of elements without count no more.
        """
        cdef Py_ssize_t lowest, highest, reach, first, last, before = self.program.size
        if count == 0 or (element.size == 0 and not element.bounded and element.extent == 0):
            return 0
        reach = times(count - 1, stride)
        lowest = plus(offset, min(0, reach))
        highest = plus(offset, max(0, reach))
        first = plus(lowest, element.true_lower_bound)
        last = plus(plus(highest, element.true_lower_bound), element.true_extent)
        self.program.place(element.program, offset, count, stride)
        if element.size:
            self.first = min(self.first, first) if before else first
            self.last = max(self.last, last) if before else last
            self.alignment = max(self.alignment, element.alignment)
            if before == 0 and element.basic >= 0:
                self.basic = element.basic
            elif self.basic < 0 or self.basic != element.basic:
                self.sign(element, count, before)
        lowest = plus(lowest, element.lower_bound)
        highest = plus(plus(highest, element.lower_bound), element.extent)
        if self.empty or (element.bounded and not self.bounded):
            self.low = lowest
            self.high = highest
        elif element.bounded == self.bounded:
            self.low = min(self.low, lowest)
            self.high = max(self.high, highest)
        self.bounded = self.bounded or element.bounded
        self.empty = False
        return 0

    cdef int sign(self, Typemap element, Py_ssize_t count, Py_ssize_t before) except -1:
        """Behind `before` bytes come entries of another kind."""
        cdef tuple entries = element.entries()
        if len(entries) == 1:
            unit, repeat = entries[0]
            repeat *= count
        else:
            unit, repeat = entries, count
        if self.units is None:
            self.units = [(self.basic, before // basics[self.basic].size)] if before else []
            self.basic = -1
        if self.units:
            previous, times = self.units[len(self.units) - 1]
            if previous == unit:
                self.units.pop()
                repeat += times
        self.units.append((unit, repeat))
        return 0

    cdef Typemap finish(self):
        cdef Py_ssize_t excess
        self.program.finish()
        self.size = self.program.size
        self.lower_bound = self.low
        if subtract(self.high, self.low, &self.extent) or subtract(self.last, self.first, &self.true_extent):
            raise MPIError(ERR_ARG, f"a datatype from byte {min(self.low, self.first)} to {max(self.high, self.last)} "
                                    "is longer than an address can tell")
        if not self.bounded:
            # The padding that a C compiler would add, so that in an array of these every entry is aligned.
            excess = self.extent % self.alignment
            self.extent = plus(self.extent, self.alignment - excess if excess else 0)
        self.true_lower_bound = self.first
        if self.units is not None:
            self.mixture = tuple(self.units)
            self.units = None
        self.contiguous = self.is_one_block()
        return self

    cdef bint is_one_block(self):
        """Whether its elements are one block after the other."""
        return self.size == 0 or (
            self.extent == self.size and self.program.root_count == 1 and self.program.roots[0].body == 0
            and self.program.roots[0].count == 1 and self.program.roots[0].offset == 0
        )

    cdef tuple entries(self):
        if self.mixture is not None:
            return self.mixture
        return ((self.basic, self.size // basics[self.basic].size),) if self.size else ()

    @property
    def signature(self):
        """Basic entries in order, as pairs (unit, repeat); see `typemap.pxd`."""
        return self.entries()

    cpdef Typemap create_dup(self):
        cdef Typemap made = self.copied()
        made.committed = self.committed
        return made

    cdef Typemap copied(self):
        """The same layout as a new object, without the description."""
        cdef Typemap made = Typemap.__new__(Typemap)
        made.program = self.program
        made.mixture = self.mixture
        made.size = self.size
        made.basic = self.basic
        made.alignment = self.alignment
        made.contiguous = self.contiguous
        made.bounded = self.bounded
        made.lower_bound = self.lower_bound
        made.extent = self.extent
        made.true_lower_bound = self.true_lower_bound
        made.true_extent = self.true_extent
        return made

    cpdef Typemap create_contiguous(self, Py_ssize_t count):
        return self.create_hvector(count, 1, self.extent)

    cpdef Typemap create_vector(self, Py_ssize_t count, Py_ssize_t blocklength, Py_ssize_t stride):
        return self.create_hvector(count, blocklength, times(stride, self.extent))

    cpdef Typemap create_hvector(self, Py_ssize_t count, Py_ssize_t blocklength, Py_ssize_t stride):
        check_count("count", count)
        check_count("blocklength", blocklength)
        cdef Typemap block, made
        made = begin()
        if count == 0 or blocklength == 0:
            return made.finish()
        if blocklength == 1:
            made.place(self, 0, count, stride)
        elif count == 1 or stride == times(blocklength, self.extent):
            made.place(self, 0, times(count, blocklength), self.extent)
        else:
            block = begin()
            block.place(self, 0, blocklength, self.extent)
            # The padding belongs to the whole, not to each block.
            block.bounded = not block.empty
            block = block.finish()
            made.place(block, 0, count, stride)
            made.bounded = self.bounded
        return made.finish()

    cpdef Typemap create_indexed(self, blocklengths, displacements):
        return self.indexed(blocklengths, displacements, self.extent)

    cpdef Typemap create_hindexed(self, blocklengths, displacements):
        return self.indexed(blocklengths, displacements, 1)

    cdef Typemap indexed(self, blocklengths, displacements, Py_ssize_t unit):
        check_lengths("blocklengths", blocklengths, displacements)
        cdef Typemap made = begin()
        cdef Py_ssize_t blocklength, displacement
        for blocklength, displacement in zip(blocklengths, displacements):
            check_count("blocklengths", blocklength)
            made.place(self, times(displacement, unit), blocklength, self.extent)
        return made.finish()

    cpdef Typemap create_indexed_block(self, Py_ssize_t blocklength, displacements):
        return self.indexed_block(blocklength, displacements, self.extent)

    cpdef Typemap create_hindexed_block(self, Py_ssize_t blocklength, displacements):
        return self.indexed_block(blocklength, displacements, 1)

    cdef Typemap indexed_block(self, Py_ssize_t blocklength, displacements, Py_ssize_t unit):
        check_count("blocklength", blocklength)
        cdef Typemap made = begin()
        cdef Py_ssize_t displacement
        for displacement in displacements:
            made.place(self, times(displacement, unit), blocklength, self.extent)
        return made.finish()

    cpdef Typemap create_resized(self, Py_ssize_t lower_bound, Py_ssize_t extent):
        cdef Typemap made = self.copied()
        plus(lower_bound, extent)                # the upper bound
        made.lower_bound = lower_bound
        made.extent = extent
        made.bounded = True
        made.contiguous = made.is_one_block()
        return made

    cpdef Typemap create_subarray(self, sizes, subsizes, starts, bint fortran):
        """A box of an array (MPI-4.1, 5.1.3)."""
        cdef int dimensions = len(sizes), dimension
        cdef Py_ssize_t *numbers
        check_lengths("subsizes", subsizes, sizes)
        check_lengths("starts", starts, sizes)
        numbers = <Py_ssize_t *> PyMem_Malloc((3 * dimensions + 1) * sizeof(Py_ssize_t))
        if numbers == NULL:
            raise MemoryError()
        try:
            for dimension in range(dimensions):
                numbers[dimension] = sizes[dimension]
                numbers[dimensions + dimension] = subsizes[dimension]
                numbers[2 * dimensions + dimension] = starts[dimension]
            return self.box(dimensions, numbers, numbers + dimensions, numbers + 2 * dimensions, fortran)
        finally:
            PyMem_Free(numbers)

    cdef Typemap box(self, int dimensions, const Py_ssize_t *sizes, const Py_ssize_t *subsizes, const Py_ssize_t *starts,
                     bint fortran):
        """Rows of the innermost dimension, rounds of rows for each one around it.

            sizes (4, 6), subsizes (2, 3), starts (1, 2)      ......
                                                              ..###.      place 3, from element 8 on
                                                              ..###.      repeat 2, 6 elements apart
                                                              ......
        """
        cdef Typemap made = begin()
        cdef Py_ssize_t size, subsize, start, offset = 0, stride = self.extent, reach
        cdef int dimension, step
        if dimensions == 0:
            raise MPIError(ERR_ARG, "sizes: an array has at least one dimension")
        for step in range(dimensions):
            dimension = step if fortran else dimensions - 1 - step
            size, subsize, start = sizes[dimension], subsizes[dimension], starts[dimension]
            if size < 1 or not 0 <= subsize <= size or not 0 <= start <= size - subsize:
                raise MPIError(ERR_ARG, f"subsizes, starts: {subsize} elements from {start} do not lie in a dimension "
                                        f"of {size}")
            if step == 0:
                made.place(self, 0, subsize, stride)
            elif made.program.size:
                made.program.repeat(subsize, stride)
                if made.units is not None:
                    unit, repeat = made.units[0]
                    made.units[0] = unit, repeat * subsize
                reach = times(subsize - 1, stride)
                made.first = plus(made.first, min(0, reach))
                made.last = plus(made.last, max(0, reach))
            offset = plus(offset, times(start, stride))
            stride = times(size, stride)
        if made.program.size == 0:
            made.first = made.last = 0
            made.alignment = 1
            made.basic = -1
            made.units = None
        else:
            made.program.shift(offset)
            made.first = plus(made.first, offset)
            made.last = plus(made.last, offset)
        made.low, made.high, made.bounded = 0, stride, True
        return made.finish()

    cdef Typemap moved(self, Py_ssize_t offset, Py_ssize_t extent):
        """This type shifted by `offset` bytes, in an extent that begins at 0."""
        cdef Typemap made = begin()
        made.place(self, offset, 1, 0)
        return made.finish().create_resized(0, extent)

    cpdef Typemap create_darray(self, int size, int rank, gsizes, distributions, arguments, psizes, bint fortran):
        """One process's part of a distributed array (MPI-4.1, 5.1.4).

        For each dimension, innermost first, the elements that this process owns:

            16 elements over 2 processes, process 1      block:      ........########
                                                         cyclic(3):  ...###...###...#
        """
        cdef Py_ssize_t gsize, psize, argument, block, owned, first, period, coordinate, stride = self.extent, offset = 0
        cdef int remaining = size, below = rank
        cdef Typemap part = self
        for name, values in (("distribs", distributions), ("dargs", arguments), ("psizes", psizes)):
            check_lengths(name, values, gsizes)
        if not 0 <= rank < size:
            raise MPIError(ERR_ARG, f"rank {rank} is not in 0 .. {size - 1}")
        coordinates = []
        for psize in psizes:
            if psize < 1 or remaining % psize:
                raise MPIError(ERR_ARG, f"psizes {list(psizes)} do not make a grid of {size} processes")
            remaining //= psize
            coordinates.append(below // remaining)
            below %= remaining
        if remaining != 1:
            raise MPIError(ERR_ARG, f"psizes {list(psizes)} do not make a grid of {size} processes")
        dimensions = list(zip(gsizes, distributions, arguments, psizes, coordinates))
        for gsize, distribution, argument, psize, coordinate in dimensions if fortran else reversed(dimensions):
            if gsize < 1:
                raise MPIError(ERR_ARG, f"gsizes: {gsize} elements in a dimension")
            block = block_of(gsize, distribution, argument, psize)
            first, period = times(coordinate, block), times(psize, block)
            owned = max(0, gsize - first) // period * block + min(block, max(0, gsize - first) % period)
            part = part.cyclic(owned, block, stride, times(period, stride))
            offset = plus(offset, times(first, stride))
            stride = times(gsize, stride)
        return part.moved(offset, stride)

    cdef Typemap cyclic(self, Py_ssize_t owned, Py_ssize_t block, Py_ssize_t stride, Py_ssize_t block_stride):
        """`owned` elements `stride` bytes apart in blocks that begin `block_stride` bytes apart; the last may be short."""
        cdef Typemap made = begin()
        cdef Py_ssize_t blocks = owned // block
        if blocks:
            made.place(self.create_hvector(block, 1, stride), 0, blocks, block_stride)
        made.place(self, times(blocks, block_stride), owned % block, stride)
        return made.finish()

    cpdef Py_ssize_t elements_in(self, Py_ssize_t nbytes) except -2:
        cdef Py_ssize_t whole
        if self.size == 0:
            return 0
        whole = nbytes // self.size
        found, left = leading(self.entries(), nbytes - whole * self.size)
        return -1 if left else whole * entries(self.entries()) + found

    cpdef Py_ssize_t bytes_of(self, Py_ssize_t count) except -1:
        cdef Py_ssize_t per_element = entries(self.entries()), whole
        if per_element == 0:
            return 0
        whole = count // per_element
        return whole * self.size + leading_bytes(self.entries(), count - whole * per_element)


cdef Py_ssize_t block_of(Py_ssize_t gsize, distribution, Py_ssize_t argument, Py_ssize_t psize) except -1:
    """Elements in one block of a distributed dimension."""
    if distribution == DISTRIBUTE_NONE:
        if psize != 1:
            raise MPIError(ERR_ARG, f"psizes: a dimension that is not distributed has 1 process, not {psize}")
        return gsize
    if distribution not in (DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC):
        raise MPIError(ERR_ARG, f"distribs: {distribution} is none of DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC, DISTRIBUTE_NONE")
    if argument == DISTRIBUTE_DFLT_DARG:
        return (gsize - 1) // psize + 1 if distribution == DISTRIBUTE_BLOCK else 1
    if argument < 1 or (distribution == DISTRIBUTE_BLOCK and argument <= (gsize - 1) // psize):
        raise MPIError(ERR_ARG, f"dargs: blocks of {argument} do not distribute {gsize} elements over {psize} processes")
    return min(argument, gsize)


cdef entries(unit):
    """Basic elements in a unit of a signature."""
    if isinstance(unit, tuple):
        return sum([entries(part) * repeat for part, repeat in unit])
    return 2 if basics[<int> unit].group == GROUP_PAIR else 1


cdef bytes_in(unit):
    if isinstance(unit, tuple):
        return sum([bytes_in(part) * repeat for part, repeat in unit])
    return basics[<int> unit].size


cdef tuple leading(unit, nbytes):
    """Basic elements in the first `nbytes` bytes of a unit, and the bytes left over, which are less than an element."""
    if not isinstance(unit, tuple):
        pair = basics[<int> unit].group == GROUP_PAIR
        value = basics[<int> unit].value_size
        return (1, nbytes - value) if pair and nbytes >= value else (0, nbytes)
    found = 0
    for part, repeat in unit:
        size = bytes_in(part)
        whole = min(repeat, nbytes // size)
        found += whole * entries(part)
        nbytes -= whole * size
        if whole < repeat:
            inner, nbytes = leading(part, nbytes)
            return found + inner, nbytes
    return found, nbytes


cdef leading_bytes(unit, count):
    """Bytes in the first `count` basic elements of a unit."""
    if not isinstance(unit, tuple):
        return basics[<int> unit].value_size if count else 0
    total = 0
    for part, repeat in unit:
        each = entries(part)
        whole = min(repeat, count // each)
        total += whole * bytes_in(part)
        count -= whole * each
        if whole < repeat:
            return total + leading_bytes(part, count)
    return total


cdef int check_count(str name, Py_ssize_t count) except -1:
    if count < 0:
        raise MPIError(ERR_COUNT, f"{name}: {count} is negative")
    return 0


cdef int check_lengths(str name, values, others) except -1:
    if len(values) != len(others):
        raise MPIError(ERR_ARG, f"{name}: {len(values)} values where {len(others)} were expected")
    return 0


cpdef Typemap create_struct(blocklengths, displacements, typemaps):
    """A sequence of blocks of different types (MPI-4.1, 5.1.2); displacements in bytes."""
    check_lengths("displacements", displacements, blocklengths)
    check_lengths("datatypes", typemaps, blocklengths)
    cdef Typemap element, made = begin()
    cdef Py_ssize_t blocklength, displacement
    for blocklength, displacement, element in zip(blocklengths, displacements, typemaps):
        check_count("blocklengths", blocklength)
        made.place(element, displacement, blocklength, element.extent)
    return made.finish()


cdef Typemap from_basic(int code):
    cdef Basic *basic = &basics[code]
    cdef Typemap made = begin()
    made.program.block(0, basic.value_size)
    made.last = basic.size
    if basic.group == GROUP_PAIR:
        made.program.block(basic.index_offset, basic.size - basic.value_size)
        made.last = basic.index_offset + basic.size - basic.value_size
    made.high = basic.extent
    made.alignment = basic.alignment
    made.basic = code
    made.committed = True
    return made.finish()


cdef list table = [from_basic(code) for code in range(BASIC_TYPES)]

cpdef Typemap predefined(int code):
    if not 0 <= code < BASIC_TYPES:
        raise MPIError(ERR_ARG, f"{code} is no code of a predefined datatype")
    return <Typemap> table[code]


cdef Py_ssize_t span(Typemap typemap, Py_ssize_t count, Py_ssize_t *first) except -1:
    cdef Py_ssize_t reach
    first[0] = 0
    if count <= 0 or typemap.size == 0:
        return 0
    times(count, typemap.size)                   # entries that overlap: more data than memory
    reach = times(count - 1, typemap.extent)
    first[0] = plus(typemap.true_lower_bound, min(0, reach))
    return plus(typemap.true_extent, max(reach, times(reach, -1)))


cdef bint lies_within(Typemap typemap, Py_ssize_t count, Py_ssize_t offset, Py_ssize_t nbytes) noexcept:
    cdef Py_ssize_t reach, first, end, total
    if count <= 0 or typemap.size == 0:
        return True
    if multiply(count, typemap.size, &total):
        return False
    if typemap.contiguous:
        return offset >= 0 and total <= nbytes - offset
    if (multiply(count - 1, typemap.extent, &reach) or add(offset, typemap.true_lower_bound, &first)
            or add(first, reach, &end)):
        return False
    if reach < 0:
        first, end = end, first
    return first >= 0 and not add(end, typemap.true_extent, &end) and end <= nbytes
