# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The predefined reductions: a tight loop for each operation and machine type, chosen by a table (MPI-4.1, 6.9)."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from ompy.core.basic cimport (
    BASIC_2DOUBLE_PRECISION, BASIC_2INT, BASIC_2INTEGER, BASIC_2REAL, BASIC_DOUBLE_INT, BASIC_FLOAT_INT,
    BASIC_LONG_DOUBLE_INT, BASIC_LONG_INT, BASIC_SHORT_INT, BASIC_TYPES, ELEMENTS,
    ELEMENT_FLOAT, ELEMENT_FLOAT16, ELEMENT_FLOAT128, ELEMENT_INT8,
    ELEMENT_INT16, ELEMENT_INT32, ELEMENT_INT64, ELEMENT_INT128, ELEMENT_LONG_DOUBLE, ELEMENT_DOUBLE, ELEMENT_UINT8,
    ELEMENT_UINT16, ELEMENT_UINT32, ELEMENT_UINT64, GROUP_BYTE, GROUP_C_INTEGER, GROUP_COMPLEX, GROUP_FLOATING,
    GROUP_FORTRAN_INTEGER, GROUP_LOGICAL, GROUP_MULTI_LANGUAGE, GROUP_PAIR, Basic, BasicType, Element, basics,
)
from ompy.core.convertor cimport copy_typed
from ompy.core.owner cimport this_thread
from ompy.core.typemap cimport Typemap, predefined as predefined_typemap

from ompy.core.errors import ERR_OP, MPIError


cdef extern from *:
    """
    /* The loops below are what this module is for: without O3, gcc does not vectorise loops of unknown length. */
    #if defined(__GNUC__) && !defined(__clang__)
    #pragma GCC optimize ("O3")
    #endif
    typedef __int128 ompy_int128;
    #ifdef __SIZEOF_FLOAT128__
    typedef __float128 ompy_float128;
    #else
    typedef long double ompy_float128;
    #endif
    #ifdef __FLT16_MANT_DIG__
    typedef _Float16 ompy_float16;
    #define OMPY_HAS_FLOAT16 1
    #else
    typedef float ompy_float16;
    #define OMPY_HAS_FLOAT16 0
    #endif
    typedef struct { short value; int index; } ompy_short_index;
    typedef struct { int value; int index; } ompy_int_index;
    typedef struct { long value; int index; } ompy_long_index;
    typedef struct { float value; int index; } ompy_float_index;
    typedef struct { double value; int index; } ompy_double_index;
    typedef struct { long double value; int index; } ompy_long_double_index;
    typedef struct { float value; float index; } ompy_two_floats;
    typedef struct { double value; double index; } ompy_two_doubles;

    /* The commonest of the loops below once more, for processors with registers of 32 and of 64 bytes: MAX, MIN, SUM, PROD.
       Processors that slow down when they use the widest ones have no AVX-512 VBMI2.  A step loads from both sides before it
       stores, so that no load waits for a store 4 KiB before it, which it seems to hit. */
    typedef void (*ompy_kernel)(const void *, void *, Py_ssize_t);
    #if defined(__x86_64__) && defined(__GNUC__)
    #define OMPY_CHOSEN(CHOICE, X, Y)                                                                             \\
        ((vector) (((CHOICE) & (__typeof__(CHOICE)) (X)) | (~(CHOICE) & (__typeof__(CHOICE)) (Y))))
    #define OMPY_LARGER(X, Y) ((X) > (Y) ? (X) : (Y))
    #define OMPY_SMALLER(X, Y) ((X) < (Y) ? (X) : (Y))
    #define OMPY_LARGER_EACH(X, Y) OMPY_CHOSEN((X) > (Y), X, Y)
    #define OMPY_SMALLER_EACH(X, Y) OMPY_CHOSEN((X) < (Y), X, Y)
    #define OMPY_SUM(X, Y) ((X) + (Y))
    #define OMPY_PRODUCT(X, Y) ((X) * (Y))
    /* NAME forwards, NAME_back a step at a time, the last one first. */
    #define OMPY_WIDE_LOOP(NAME, TARGET, BYTES, TYPE, EACH, ONE)                                                  \\
    __attribute__((target(TARGET), always_inline))                                                                \\
    static inline void NAME##_step(const TYPE *input, TYPE *inout) {                                              \\
        typedef TYPE vector __attribute__((vector_size(BYTES), aligned(sizeof(TYPE)), may_alias));                \\
        const vector *x = (const vector *) input;                                                                 \\
        vector *y = (vector *) inout;                                                                             \\
        vector a = x[0], b = x[1], c = x[2], d = x[3], e = y[0], f = y[1], g = y[2], h = y[3];                    \\
        y[0] = EACH(a, e);                                                                                        \\
        y[1] = EACH(b, f);                                                                                        \\
        y[2] = EACH(c, g);                                                                                        \\
        y[3] = EACH(d, h);                                                                                        \\
    }                                                                                                             \\
    __attribute__((target(TARGET))) static void NAME(const void *from, void *to, Py_ssize_t count) {              \\
        enum { STEP = 4 * BYTES / sizeof(TYPE) };                                                                 \\
        const TYPE *input = (const TYPE *) from;                                                                  \\
        TYPE *inout = (TYPE *) to;                                                                                \\
        Py_ssize_t i = 0;                                                                                         \\
        for (; i + STEP <= count; i += STEP)                                                                      \\
            NAME##_step(input + i, inout + i);                                                                    \\
        for (; i < count; i++)                                                                                    \\
            inout[i] = ONE(input[i], inout[i]);                                                                   \\
    }                                                                                                             \\
    __attribute__((target(TARGET))) static void NAME##_back(const void *from, void *to, Py_ssize_t count) {       \\
        enum { STEP = 4 * BYTES / sizeof(TYPE) };                                                                 \\
        const TYPE *input = (const TYPE *) from;                                                                  \\
        TYPE *inout = (TYPE *) to;                                                                                \\
        Py_ssize_t i = count - count % STEP;                                                                      \\
        for (Py_ssize_t last = i; last < count; last++)                                                           \\
            inout[last] = ONE(input[last], inout[last]);                                                          \\
        for (i -= STEP; i >= 0; i -= STEP)                                                                        \\
            NAME##_step(input + i, inout + i);                                                                    \\
    }
    /* NUMBER is TYPE without a sign where it is an integer: sums wrap around. */
    #define OMPY_WIDE_LOOPS(NAME, TARGET, BYTES, TYPE, NUMBER)                                                    \\
    OMPY_WIDE_LOOP(NAME##_max, TARGET, BYTES, TYPE, OMPY_LARGER_EACH, OMPY_LARGER)                                \\
    OMPY_WIDE_LOOP(NAME##_min, TARGET, BYTES, TYPE, OMPY_SMALLER_EACH, OMPY_SMALLER)                              \\
    OMPY_WIDE_LOOP(NAME##_sum, TARGET, BYTES, NUMBER, OMPY_SUM, OMPY_SUM)                                         \\
    OMPY_WIDE_LOOP(NAME##_product, TARGET, BYTES, NUMBER, OMPY_PRODUCT, OMPY_PRODUCT)
    #define OMPY_WIDE(NAME, TYPE, NUMBER)                                                                         \\
    OMPY_WIDE_LOOPS(NAME##_32, "avx2", 32, TYPE, NUMBER)                                                          \\
    OMPY_WIDE_LOOPS(NAME##_64, "avx512f,prefer-vector-width=512", 64, TYPE, NUMBER)                               \\
    static const ompy_kernel NAME[2][2][4] = {                                                                    \\
        {{NAME##_32_max, NAME##_32_min, NAME##_32_sum, NAME##_32_product},                                        \\
         {NAME##_32_max_back, NAME##_32_min_back, NAME##_32_sum_back, NAME##_32_product_back}},                   \\
        {{NAME##_64_max, NAME##_64_min, NAME##_64_sum, NAME##_64_product},                                        \\
         {NAME##_64_max_back, NAME##_64_min_back, NAME##_64_sum_back, NAME##_64_product_back}}};
    static int ompy_widths(void) {
        __builtin_cpu_init();
        return !__builtin_cpu_supports("avx2") ? 0 : !__builtin_cpu_supports("avx512vbmi2") ? 1 : 2;
    }
    #else
    #define OMPY_WIDE(NAME, TYPE, NUMBER) static const ompy_kernel NAME[2][2][4];
    static int ompy_widths(void) { return 0; }
    #endif
    OMPY_WIDE(ompy_wide_int32, int32_t, uint32_t)
    OMPY_WIDE(ompy_wide_int64, int64_t, uint64_t)
    OMPY_WIDE(ompy_wide_float, float, float)
    OMPY_WIDE(ompy_wide_double, double, double)
    """
    int widths "ompy_widths"() noexcept nogil    # of registers that this processor has
    # By width, forwards and backwards, by loop.
    const Kernel wide_int32 "ompy_wide_int32"[2][2][4]
    const Kernel wide_int64 "ompy_wide_int64"[2][2][4]
    const Kernel wide_float "ompy_wide_float"[2][2][4]
    const Kernel wide_double "ompy_wide_double"[2][2][4]
    const bint OMPY_HAS_FLOAT16
    ctypedef long long int128 "ompy_int128"
    # Cython takes two typedefs of `float` for one member of a fused type, and has three floating types only: these two
    # pass for integers, which makes no difference to the C code of the loops.
    ctypedef short float16 "ompy_float16"
    ctypedef unsigned long float128 "ompy_float128"
    ctypedef struct ShortIndex "ompy_short_index":
        short value
        int index
    ctypedef struct IntIndex "ompy_int_index":
        int value
        int index
    ctypedef struct LongIndex "ompy_long_index":
        long value
        int index
    ctypedef struct FloatIndex "ompy_float_index":
        float value
        int index
    ctypedef struct DoubleIndex "ompy_double_index":
        double value
        int index
    ctypedef struct LongDoubleIndex "ompy_long_double_index":
        long double value
        int index
    ctypedef struct TwoFloats "ompy_two_floats":
        float value
        float index
    ctypedef struct TwoDoubles "ompy_two_doubles":
        double value
        double index


ctypedef long double extended

ctypedef fused Integer:
    int8_t
    int16_t
    int32_t
    int64_t
    int128
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused Real:
    float16
    float
    double
    extended
    float128

ctypedef fused Number:
    int8_t
    int16_t
    int32_t
    int64_t
    int128
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    float16
    float
    double
    extended
    float128

ctypedef fused Pair:
    ShortIndex
    IntIndex
    LongIndex
    FloatIndex
    DoubleIndex
    LongDoubleIndex
    TwoFloats
    TwoDoubles

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


cdef void maximum(const Number *input, Number *inout, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        inout[i] = input[i] if input[i] > inout[i] else inout[i]


cdef void minimum(const Number *input, Number *inout, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        inout[i] = input[i] if input[i] < inout[i] else inout[i]


cdef void total(const Number *input, Number *inout, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        inout[i] = input[i] + inout[i]


cdef void product(const Number *input, Number *inout, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        inout[i] = input[i] * inout[i]


cdef void complex_total(const Real *input, Real *inout, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(2 * count):
        inout[i] = input[i] + inout[i]


cdef void complex_product(const Real *input, Real *inout, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    cdef Real real, imaginary
    for i in range(0, 2 * count, 2):
        real = input[i] * inout[i] - input[i + 1] * inout[i + 1]
        imaginary = input[i] * inout[i + 1] + input[i + 1] * inout[i]
        inout[i] = real
        inout[i + 1] = imaginary


cdef void logical_and(const Integer *input, Integer *inout, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        inout[i] = (input[i] != 0) & (inout[i] != 0)


cdef void logical_or(const Integer *input, Integer *inout, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        inout[i] = (input[i] != 0) | (inout[i] != 0)


cdef void logical_xor(const Integer *input, Integer *inout, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        inout[i] = (input[i] != 0) ^ (inout[i] != 0)


cdef void bitwise_and(const Integer *input, Integer *inout, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        inout[i] = input[i] & inout[i]


cdef void bitwise_or(const Integer *input, Integer *inout, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        inout[i] = input[i] | inout[i]


cdef void bitwise_xor(const Integer *input, Integer *inout, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        inout[i] = input[i] ^ inout[i]


cdef void maximum_location(const Pair *input, Pair *inout, Py_ssize_t count) noexcept nogil:
    """The larger value with its index; of equal values, the smaller index.  What pads the last pair may be others' memory."""
    cdef Py_ssize_t i
    for i in range(count):
        if input[i].value > inout[i].value or (input[i].value == inout[i].value and input[i].index < inout[i].index):
            inout[i].value, inout[i].index = input[i].value, input[i].index


cdef void minimum_location(const Pair *input, Pair *inout, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        if input[i].value < inout[i].value or (input[i].value == inout[i].value and input[i].index < inout[i].index):
            inout[i].value, inout[i].index = input[i].value, input[i].index


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


# -- the tables

cdef enum Loop:
    LOOP_MAX, LOOP_MIN, LOOP_SUM, LOOP_PROD, LOOP_LAND, LOOP_LOR, LOOP_LXOR, LOOP_BAND, LOOP_BOR, LOOP_BXOR,
    LOOP_COMPLEX_SUM, LOOP_COMPLEX_PROD,
    LOOPS

cdef Kernel loops[LOOPS][ELEMENTS]
cdef Kernel backward_loops[LOOPS][ELEMENTS]
cdef Kernel maximum_locations[BASIC_TYPES]
cdef Kernel minimum_locations[BASIC_TYPES]


cdef void install(Element element, const Number *_) noexcept:
    """Enter the loops of one machine type into the table."""
    loops[<int> LOOP_MAX][<int> element] = <Kernel> maximum[Number]
    loops[<int> LOOP_MIN][<int> element] = <Kernel> minimum[Number]
    loops[<int> LOOP_SUM][<int> element] = <Kernel> total[Number]
    loops[<int> LOOP_PROD][<int> element] = <Kernel> product[Number]


cdef void install_integer(Element element, const Integer *tag) noexcept:
    install[Integer](element, tag)
    loops[<int> LOOP_LAND][<int> element] = <Kernel> logical_and[Integer]
    loops[<int> LOOP_LOR][<int> element] = <Kernel> logical_or[Integer]
    loops[<int> LOOP_LXOR][<int> element] = <Kernel> logical_xor[Integer]
    loops[<int> LOOP_BAND][<int> element] = <Kernel> bitwise_and[Integer]
    loops[<int> LOOP_BOR][<int> element] = <Kernel> bitwise_or[Integer]
    loops[<int> LOOP_BXOR][<int> element] = <Kernel> bitwise_xor[Integer]


cdef void install_real(Element element, const Real *tag) noexcept:
    install[Real](element, tag)
    loops[<int> LOOP_COMPLEX_SUM][<int> element] = <Kernel> complex_total[Real]
    loops[<int> LOOP_COMPLEX_PROD][<int> element] = <Kernel> complex_product[Real]


cdef void install_pair(BasicType code, const Pair *_) noexcept:
    maximum_locations[<int> code] = <Kernel> maximum_location[Pair]
    minimum_locations[<int> code] = <Kernel> minimum_location[Pair]


install_integer[int8_t](ELEMENT_INT8, NULL)
install_integer[int16_t](ELEMENT_INT16, NULL)
install_integer[int32_t](ELEMENT_INT32, NULL)
install_integer[int64_t](ELEMENT_INT64, NULL)
install_integer[int128](ELEMENT_INT128, NULL)
install_integer[uint8_t](ELEMENT_UINT8, NULL)
install_integer[uint16_t](ELEMENT_UINT16, NULL)
install_integer[uint32_t](ELEMENT_UINT32, NULL)
install_integer[uint64_t](ELEMENT_UINT64, NULL)
if OMPY_HAS_FLOAT16:
    install_real[float16](ELEMENT_FLOAT16, NULL)
install_real[float](ELEMENT_FLOAT, NULL)
install_real[double](ELEMENT_DOUBLE, NULL)
install_real[extended](ELEMENT_LONG_DOUBLE, NULL)
install_real[float128](ELEMENT_FLOAT128, NULL)
install_pair[ShortIndex](BASIC_SHORT_INT, NULL)
install_pair[IntIndex](BASIC_2INT, NULL)
install_pair[LongIndex](BASIC_LONG_INT, NULL)
install_pair[FloatIndex](BASIC_FLOAT_INT, NULL)
install_pair[DoubleIndex](BASIC_DOUBLE_INT, NULL)
install_pair[LongDoubleIndex](BASIC_LONG_DOUBLE_INT, NULL)
install_pair[TwoFloats](BASIC_2REAL, NULL)
install_pair[TwoDoubles](BASIC_2DOUBLE_PRECISION, NULL)
install_pair[IntIndex](BASIC_2INTEGER, NULL)

cdef void widen(Element element, const Kernel *forward, const Kernel *backward) noexcept:
    cdef int loop
    for loop in range(<int> LOOP_PROD + 1):
        loops[loop][<int> element] = forward[loop]
        backward_loops[loop][<int> element] = backward[loop]


cdef int wide = widths()
if wide:
    widen(ELEMENT_INT32, wide_int32[wide - 1][0], wide_int32[wide - 1][1])
    widen(ELEMENT_INT64, wide_int64[wide - 1][0], wide_int64[wide - 1][1])
    widen(ELEMENT_FLOAT, wide_float[wide - 1][0], wide_float[wide - 1][1])
    widen(ELEMENT_DOUBLE, wide_double[wide - 1][0], wide_double[wide - 1][1])

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
