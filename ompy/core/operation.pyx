# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The predefined operations: for each, the loops of the types that it is defined on (MPI-4.1, 6.9).  See `operation.pxd`."""

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from ompy.core.basic cimport (
    BASIC_TYPES, GROUP_BYTE, GROUP_C_INTEGER, GROUP_COMPLEX, GROUP_FLOATING,
    GROUP_FORTRAN_INTEGER, GROUP_LOGICAL, GROUP_MULTI_LANGUAGE, GROUP_PAIR, Basic, basics,
)
from ompy.core.convertor cimport copy_typed
from ompy.core.owner cimport this_thread
from ompy.core.reduction_loops cimport (
    LOOP_BAND, LOOP_BOR, LOOP_BXOR, LOOP_COMPLEX_PROD, LOOP_COMPLEX_SUM, LOOP_LAND, LOOP_LOR, LOOP_LXOR, LOOP_MAX, LOOP_MIN,
    LOOP_PROD, LOOP_SUM, Kernel, backward_loops, loops, maximum_locations, minimum_locations,
)
from ompy.core.typemap cimport Typemap, predefined as predefined_typemap

from ompy.core.errors import ERR_OP, MPIError

# The groups of types for people.
WORDS = {
    GROUP_C_INTEGER: "integers of C",
    GROUP_FORTRAN_INTEGER: "integers of Fortran",
    GROUP_FLOATING: "floating-point numbers",
    GROUP_LOGICAL: "logicals",
    GROUP_COMPLEX: "complex numbers",
    GROUP_BYTE: "BYTE",
    GROUP_MULTI_LANGUAGE: "AINT, OFFSET and COUNT",
    GROUP_PAIR: "pairs such as DOUBLE_INT",
}

# Elements that are copied together when data must be brought into an array first.
cdef enum:
    COPY_BYTES = 32768
    # What is longer is reduced from either end in turns.
    LONG = 32768


cdef class Operation:
    """See `operation.pxd`.  Subclasses give `reduce` a body."""

    cdef int reduce(self, char *input, char *inout, Py_ssize_t count, Typemap typemap) except -1:
        raise MPIError(ERR_OP, f"{self.name} has no reduction of its own")

    cpdef bint defined_on(self, Typemap typemap) except -1:
        return True

    def reduce_at(self, size_t input, size_t inout, Py_ssize_t count, Typemap typemap not None) -> None:
        """`inout[i] = input[i] op inout[i]` on `count` elements at two addresses, for Python code."""
        self.reduce(<char *> input, <char *> inout, count, typemap)


# By thread, the first of each.
cdef dict kept = {}


cdef int keep_failure(object error) except -1:
    global failures_kept
    kept.setdefault(this_thread(), error)
    failures_kept = len(kept)
    return 0


cdef int raise_failure() except -1:
    global failures_kept
    error = kept.pop(this_thread(), None)
    failures_kept = len(kept)
    if error is not None:
        raise error
    return 0


cdef int forget_failures() except -1:
    global failures_kept
    kept.pop(this_thread(), None)
    failures_kept = len(kept)
    return 0


cdef bint backwards = False                      # the last long reduction began at its end


cdef bint fills_extent(Typemap typemap, const Basic *basic, Py_ssize_t entries) except -1:
    cdef Py_ssize_t padding = basic.extent - (<Typemap> predefined_typemap(typemap.basic)).true_extent
    return typemap.extent == entries * basic.extent == typemap.true_extent + padding and typemap.true_lower_bound == 0


cdef class Reduction(Operation):
    """See `operation.pxd`.

    Derived datatypes of one predefined type are reduced entry by entry, which is more than MPI asks for.
    """

    def __cinit__(self):
        memset(self.kernels, 0, sizeof(self.kernels))
        memset(self.backward, 0, sizeof(self.backward))
        self.commutative = True
        self.predefined = True

    cpdef bint defined_on(self, Typemap typemap) except -1:
        return typemap.size == 0 or (typemap.basic >= 0 and self.kernels[typemap.basic] != NULL)

    cdef int reduce(self, char *input, char *inout, Py_ssize_t count, Typemap typemap) except -1:
        global backwards
        cdef Kernel kernel = self.kernels[typemap.basic] if typemap.basic >= 0 else NULL
        cdef Basic *basic
        cdef Py_ssize_t entries
        if kernel == NULL:
            if typemap.size == 0:
                return 0
            raise MPIError(ERR_OP, self.refusal(typemap))
        basic = &basics[typemap.basic]
        # Data that fills its extent, and lies where its machine type may lie, is an array already.
        entries = 1 if typemap.size == basic.size else typemap.size // basic.size
        if (<size_t> input | <size_t> inout) & (basic.alignment - 1) == 0 \
                and (typemap.contiguous and basic.size == basic.extent or fills_extent(typemap, basic, entries)):
            if count * typemap.size > LONG and self.backward[typemap.basic] != NULL:
                # The caches still have what the last one ended with, where it was of the same memory:
                #     one:  0 1 2 ... 6 7      the next:  7 6 ... 2 1 0
                backwards = not backwards
                if backwards:
                    kernel = self.backward[typemap.basic]
            kernel(input, inout, count * entries)
            return 0
        return self.reduce_by_copy(input, inout, count, typemap)

    cdef int reduce_by_copy(self, char *input, char *inout, Py_ssize_t count, Typemap typemap) except -1:
        """Bring both sides into aligned arrays, some elements at a time."""
        cdef Basic *basic = &basics[typemap.basic]
        cdef Typemap entry = predefined_typemap(typemap.basic)
        cdef Py_ssize_t entries = typemap.size // basic.size
        cdef Py_ssize_t each = entries * basic.extent
        cdef Py_ssize_t some = max(1, COPY_BYTES // each)
        cdef char *left = <char *> malloc(2 * some * each)
        cdef char *right = left + some * each
        if left == NULL:
            raise MemoryError(f"no memory for {2 * some * each} bytes to reduce in")
        try:
            while count > 0:
                some = min(some, count)
                copy_typed(input, some, typemap, left, some * entries, entry)
                copy_typed(inout, some, typemap, right, some * entries, entry)
                self.kernels[typemap.basic](left, right, some * entries)
                copy_typed(right, some * entries, entry, inout, some, typemap)
                input += some * typemap.extent
                inout += some * typemap.extent
                count -= some
        finally:
            free(left)
        return 0

    cdef str refusal(self, Typemap typemap):
        """What is wrong, in words."""
        cdef int code
        what = "a mixture of types"
        if typemap.basic >= 0:
            what = (<bytes> basics[typemap.basic].name).decode()
        groups = set()
        for code in range(BASIC_TYPES):
            if self.kernels[code] != NULL:
                groups.add(basics[code].group)
        words = ", ".join([WORDS[group] for group in sorted(groups)])
        return f"{self.name} is not defined on {what}; it takes {words}"


cdef class Replacement(Operation):
    """REPLACE, which takes the input, and NO_OP, which leaves what is there (MPI-4.1, 12.3.4).  On every datatype."""

    cdef int reduce(self, char *input, char *inout, Py_ssize_t count, Typemap typemap) except -1:
        if self.replaces:
            copy_typed(input, count, typemap, inout, count, typemap)
        return 0

# Which groups of types each operation takes (the second table of MPI-4.1, 6.9.2).
INTEGERS = (GROUP_C_INTEGER, GROUP_FORTRAN_INTEGER, GROUP_MULTI_LANGUAGE)
ORDERED = (*INTEGERS, GROUP_FLOATING)
RULES = {
    "MAX": (LOOP_MAX, ORDERED),
    "MIN": (LOOP_MIN, ORDERED),
    "SUM": (LOOP_SUM, ORDERED),
    "PROD": (LOOP_PROD, ORDERED),
    "LAND": (LOOP_LAND, (GROUP_C_INTEGER, GROUP_LOGICAL)),
    "LOR": (LOOP_LOR, (GROUP_C_INTEGER, GROUP_LOGICAL)),
    "LXOR": (LOOP_LXOR, (GROUP_C_INTEGER, GROUP_LOGICAL)),
    "BAND": (LOOP_BAND, (*INTEGERS, GROUP_BYTE)),
    "BOR": (LOOP_BOR, (*INTEGERS, GROUP_BYTE)),
    "BXOR": (LOOP_BXOR, (*INTEGERS, GROUP_BYTE)),
}
COMPLEX_LOOPS = {"SUM": LOOP_COMPLEX_SUM, "PROD": LOOP_COMPLEX_PROD}


cdef Reduction make_reduction(str name):
    cdef Reduction made = Reduction.__new__(Reduction)
    cdef int code, loop
    made.name = name
    loop, groups = RULES[name]
    for code in range(BASIC_TYPES):
        if basics[code].group in groups:
            made.kernels[code] = loops[loop][<int> basics[code].element]
            made.backward[code] = backward_loops[loop][<int> basics[code].element]
        elif basics[code].group == GROUP_COMPLEX and name in COMPLEX_LOOPS:
            made.kernels[code] = loops[<int> COMPLEX_LOOPS[name]][<int> basics[code].element]
    return made


cdef Reduction make_location(str name, Kernel *kernels):
    cdef Reduction made = Reduction.__new__(Reduction)
    made.name = name
    memcpy(made.kernels, kernels, sizeof(made.kernels))
    return made


cdef Replacement make_replacement(str name, bint replaces):
    cdef Replacement made = Replacement.__new__(Replacement)
    made.name = name
    made.predefined = True
    made.replaces = replaces
    return made


cdef dict table = {name: make_reduction(name) for name in RULES}
table["MAXLOC"] = make_location("MAXLOC", maximum_locations)
table["MINLOC"] = make_location("MINLOC", minimum_locations)
table["REPLACE"] = make_replacement("REPLACE", True)
table["NO_OP"] = make_replacement("NO_OP", False)


cpdef Operation predefined(str name):
    return table[name]
