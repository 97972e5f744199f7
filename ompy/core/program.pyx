# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Builds the loop programs of datatypes, and merges their steps as far as it goes."""

cimport cython
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy

from ompy.core.errors import ERR_ARG, MPIError

cdef extern from *:
    const Py_ssize_t PY_SSIZE_T_MAX

# Elements with more steps than this are repeated as rounds, not copied step by step into the enclosing program.
cdef enum:
    INLINE_STEPS = 4

cdef Py_ssize_t HALF_OF_FARTHEST = PY_SSIZE_T_MAX // 2


cdef Step *enlarged(Step *steps, int *capacity, int needed) except NULL:
    cdef Step *larger
    if needed <= capacity[0] and steps != NULL:
        return steps
    capacity[0] = needed if needed < 4 else needed + needed // 2
    larger = <Step *> realloc(steps, <size_t> capacity[0] * sizeof(Step))
    if larger == NULL:
        raise MemoryError(f"no memory for {needed} steps of a datatype")
    return larger


cdef bint repeated(Step *step, Py_ssize_t count, Py_ssize_t stride) noexcept:
    """Make one block, one round, or a run of rounds that the next one continues, `count` of itself; False for any other."""
    if step.count != 1 and step.count * step.stride != stride:
        return False
    if step.count == 1:
        step.stride = stride
    step.count *= count
    if step.body == 0 and step.stride == step.length:
        step.length *= step.count
        step.count = 1
        step.stride = 0
    return True


cdef bint follows(const Step *last, const Step *step) noexcept:
    """Whether `step` is what further rounds of `last` would do."""
    if step.length != last.length or step.body != last.body or step.first != last.first:
        return False
    if last.count == 1:
        if step.count > 1:
            return step.offset == last.offset + step.stride
        # From one end of the address space to the other is farther than a stride can tell.
        return -HALF_OF_FARTHEST < step.offset // 2 - last.offset // 2 < HALF_OF_FARTHEST
    return step.offset == last.offset + last.count * last.stride and (step.count == 1 or step.stride == last.stride)


cdef int check_total(Py_ssize_t size, Py_ssize_t count, Py_ssize_t already) except -1:
    if count > (PY_SSIZE_T_MAX - already) // size:
        raise MPIError(ERR_ARG, f"count {count} of elements of {size} bytes makes a datatype "
                                f"of more than {PY_SSIZE_T_MAX} bytes")
    return 0


@cython.no_gc
@cython.freelist(64)
cdef class Program:
    """See `program.pxd`."""

    def __cinit__(self):
        self.roots = self.own_roots
        self.root_capacity = OWN_STEPS

    def __dealloc__(self):
        if self.roots != self.own_roots:
            free(self.roots)
        free(self.bodies)

    cdef int block(self, Py_ssize_t offset, Py_ssize_t length) except -1:
        cdef Step step
        step.offset = offset
        step.length = length
        step.count = 1
        step.stride = 0
        step.start = step.first = step.body = 0
        return self.append(&step)

    cdef int append(self, const Step *step) except -1:
        """Add a step at the end, or let the last step grow by it.

            (0, 4 bytes) + (4, 4 bytes)                   ->  (0, 8 bytes)
            (0, 8 bytes) + (32, 8 bytes)                  ->  (0, 8 bytes, count 2, stride 32)
            (0, 8 bytes, count 2, stride 32) + (64, ...)  ->  (0, 8 bytes, count 3, stride 32)
        """
        cdef Step *last
        if step.length == 0 or step.count == 0:
            return 0
        if self.root_count:
            last = &self.roots[self.root_count - 1]
            if step.body == 0 and last.body == 0 and step.count == 1 == last.count \
                    and step.offset == last.offset + last.length:
                last.length += step.length
                self.size += step.length
                return 0
            if follows(last, step):
                if last.count == 1:
                    last.stride = step.offset - last.offset
                last.count += step.count
                self.size += step.count * step.length
                return 0
        self.make_room(self.root_count + 1)
        self.roots[self.root_count] = step[0]
        self.roots[self.root_count].start = self.size
        self.root_count += 1
        self.size += step.count * step.length
        return 0

    cdef int place(self, Program element, Py_ssize_t offset, Py_ssize_t count, Py_ssize_t stride) except -1:
        cdef Step step
        cdef int i, base
        if count == 0 or element.size == 0:
            return 0
        check_total(element.size, count, self.size)
        base = self.import_bodies(element) if element.body_count or element.root_count > 1 else 0
        if count == 1 and element.root_count <= INLINE_STEPS:
            self.depth = max(self.depth, element.depth)
            for i in range(element.root_count):
                step = element.roots[i]
                step.offset += offset
                step.first += base if step.body else 0
                self.append(&step)
            return 0
        if element.root_count == 1:
            step = element.roots[0]
            step.first += base if step.body else 0
            if repeated(&step, count, stride):
                self.depth = max(self.depth, element.depth)
                step.offset += offset
                return self.append(&step)
            offset += step.offset
            step.offset = 0
            step.start = 0
            step.first = self.add_body(&step, 1)
            step.body = 1
        else:
            step.first = base + element.body_count
            step.body = element.root_count
        self.depth = max(self.depth, element.depth + 1)
        step.offset = offset
        step.length = element.size
        step.count = count
        step.stride = stride if count > 1 else 0
        return self.append(&step)

    cdef int repeat(self, Py_ssize_t count, Py_ssize_t stride) except -1:
        cdef Step *only = self.roots
        cdef Step round
        if count == 1 or self.size == 0:
            return 0
        if count == 0:
            self.root_count = self.body_count = self.depth = 0
            self.size = 0
            return 0
        check_total(self.size, count, 0)
        if self.root_count > 1 or not repeated(only, count, stride):
            round.offset = only.offset if self.root_count == 1 else 0
            if self.root_count == 1:
                only.offset = 0
            round.body = self.root_count
            round.first = self.add_body(self.roots, self.root_count)
            round.length = self.size
            round.count = count
            round.stride = stride
            round.start = 0
            only[0] = round
            self.root_count = 1
            self.depth += 1
        self.size *= count
        return 0

    cdef void shift(self, Py_ssize_t offset) noexcept:
        cdef int i
        for i in range(self.root_count):
            self.roots[i].offset += offset

    cdef int make_room(self, int needed) except -1:
        """For so many roots."""
        cdef Step *larger
        if needed <= self.root_capacity:
            return 0
        if self.roots != self.own_roots:
            self.roots = enlarged(self.roots, &self.root_capacity, needed)
            return 0
        larger = enlarged(NULL, &self.root_capacity, needed)
        memcpy(larger, self.own_roots, sizeof(self.own_roots))
        self.roots = larger
        return 0

    cdef int add_body(self, const Step *steps, int count) except -1:
        """Copy steps to `bodies`, unless the steps added last are the same; returns where they are."""
        cdef int i
        if self.body_count >= count and memcmp(&self.bodies[self.body_count - count], steps, count * sizeof(Step)) == 0:
            return self.body_count - count
        self.bodies = enlarged(self.bodies, &self.body_capacity, self.body_count + count)
        for i in range(count):
            self.bodies[self.body_count + i] = steps[i]
        self.body_count += count
        return self.body_count - count

    cdef int import_bodies(self, Program element) except -1:
        """Make the element's bodies, and its roots behind them when they are to be a body, part of this program.

        Returns what to add to the element's `first` numbers.  Placing the same element again costs no memory.
        """
        cdef int i, base, rooted
        if self.imports is None:
            self.imports = {}
        known = self.imports.get(element)
        if known is not None:
            return known
        base = self.body_count
        rooted = element.root_count if element.root_count > 1 else 0
        if element.body_count + rooted:
            self.bodies = enlarged(self.bodies, &self.body_capacity, base + element.body_count + rooted)
        for i in range(element.body_count):
            self.bodies[base + i] = element.bodies[i]
        for i in range(rooted):
            self.bodies[base + element.body_count + i] = element.roots[i]
        self.body_count += element.body_count + rooted
        for i in range(base, self.body_count):
            if self.bodies[i].body:
                self.bodies[i].first += base
        self.imports[element] = base
        return base

    cdef int finish(self) except -1:
        self.imports = None
        return 0

    def steps(self) -> list:
        """The program for people: `(offset, length, count, stride)` for blocks, with a list of steps after it for rounds."""
        return [described(self, &self.roots[i]) for i in range(self.root_count)]


cdef tuple described(Program program, const Step *step):
    fields = (step.offset, step.length, step.count, step.stride)
    if step.body == 0:
        return fields
    return (*fields, [described(program, &program.bodies[step.first + i]) for i in range(step.body)])
