# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The loops of the predefined reductions, for each machine type (MPI-4.1, 6.9).  See `reduction_loops.pxd`."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from ompy.core.basic cimport (
    BASIC_2DOUBLE_PRECISION, BASIC_2INT, BASIC_2INTEGER, BASIC_2REAL, BASIC_DOUBLE_INT, BASIC_FLOAT_INT,
    BASIC_LONG_DOUBLE_INT, BASIC_LONG_INT, BASIC_SHORT_INT,
    ELEMENT_FLOAT, ELEMENT_FLOAT16, ELEMENT_FLOAT128, ELEMENT_INT8,
    ELEMENT_INT16, ELEMENT_INT32, ELEMENT_INT64, ELEMENT_INT128, ELEMENT_LONG_DOUBLE, ELEMENT_DOUBLE, ELEMENT_UINT8,
    ELEMENT_UINT16, ELEMENT_UINT32, ELEMENT_UINT64, BasicType, Element,
)


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
