# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The table of the predefined datatypes (MPI-4.1, 3.2.2, 5.1, 6.9.2)."""

from libc.stddef cimport wchar_t


cdef extern from *:
    """
    /* The compiler knows the padding of the pairs that MINLOC and MAXLOC work on. */
    typedef struct { short value; int index; } ompy_short_int;
    typedef struct { long value; int index; } ompy_long_int;
    typedef struct { double value; int index; } ompy_double_int;
    typedef struct { long double value; int index; } ompy_long_double_int;
    """
    ctypedef struct ShortInt "ompy_short_int":
        short value
    ctypedef struct LongInt "ompy_long_int":
        long value
    ctypedef struct DoubleInt "ompy_double_int":
        double value
    ctypedef struct LongDoubleInt "ompy_long_double_int":
        long double value


cdef void define(BasicType code, const char *name, TypeGroup group, Element element, Py_ssize_t size) noexcept:
    """A type whose alignment is its size, or that of its parts."""
    cdef Basic *basic = &basics[<int> code]
    basic.name = name
    basic.group = group
    basic.element = element
    basic.size = size
    basic.value_size = size
    basic.extent = size
    basic.alignment = size // 2 if group == GROUP_COMPLEX else size
    basic.index_offset = 0


cdef void define_pair(BasicType code, const char *name, Element element, Py_ssize_t value_size, Py_ssize_t index_size,
                      Py_ssize_t extent) noexcept:
    define(code, name, GROUP_PAIR, element, value_size + index_size)
    cdef Basic *basic = &basics[<int> code]
    basic.extent = extent
    basic.value_size = value_size
    basic.alignment = value_size if value_size > index_size else index_size
    basic.index_offset = value_size if value_size > index_size else index_size


cdef Element signed_element(Py_ssize_t size) noexcept:
    if size == 1:
        return ELEMENT_INT8
    if size == 2:
        return ELEMENT_INT16
    if size == 4:
        return ELEMENT_INT32
    return ELEMENT_INT64 if size == 8 else ELEMENT_INT128


cdef Element unsigned_element(Py_ssize_t size) noexcept:
    if size == 1:
        return ELEMENT_UINT8
    if size == 2:
        return ELEMENT_UINT16
    return ELEMENT_UINT32 if size == 4 else ELEMENT_UINT64


cdef void define_integers() noexcept:
    cdef TypeGroup group = GROUP_C_INTEGER
    define(BASIC_SIGNED_CHAR, b"SIGNED_CHAR", group, ELEMENT_INT8, 1)
    define(BASIC_SHORT, b"SHORT", group, signed_element(sizeof(short)), sizeof(short))
    define(BASIC_INT, b"INT", group, signed_element(sizeof(int)), sizeof(int))
    define(BASIC_LONG, b"LONG", group, signed_element(sizeof(long)), sizeof(long))
    define(BASIC_LONG_LONG, b"LONG_LONG", group, ELEMENT_INT64, 8)
    define(BASIC_UNSIGNED_CHAR, b"UNSIGNED_CHAR", group, ELEMENT_UINT8, 1)
    define(BASIC_UNSIGNED_SHORT, b"UNSIGNED_SHORT", group, unsigned_element(sizeof(short)), sizeof(short))
    define(BASIC_UNSIGNED, b"UNSIGNED", group, unsigned_element(sizeof(int)), sizeof(int))
    define(BASIC_UNSIGNED_LONG, b"UNSIGNED_LONG", group, unsigned_element(sizeof(long)), sizeof(long))
    define(BASIC_UNSIGNED_LONG_LONG, b"UNSIGNED_LONG_LONG", group, ELEMENT_UINT64, 8)
    define(BASIC_INT8_T, b"INT8_T", group, ELEMENT_INT8, 1)
    define(BASIC_INT16_T, b"INT16_T", group, ELEMENT_INT16, 2)
    define(BASIC_INT32_T, b"INT32_T", group, ELEMENT_INT32, 4)
    define(BASIC_INT64_T, b"INT64_T", group, ELEMENT_INT64, 8)
    define(BASIC_UINT8_T, b"UINT8_T", group, ELEMENT_UINT8, 1)
    define(BASIC_UINT16_T, b"UINT16_T", group, ELEMENT_UINT16, 2)
    define(BASIC_UINT32_T, b"UINT32_T", group, ELEMENT_UINT32, 4)
    define(BASIC_UINT64_T, b"UINT64_T", group, ELEMENT_UINT64, 8)
    group = GROUP_FORTRAN_INTEGER
    define(BASIC_INTEGER, b"INTEGER", group, ELEMENT_INT32, 4)
    define(BASIC_INTEGER1, b"INTEGER1", group, ELEMENT_INT8, 1)
    define(BASIC_INTEGER2, b"INTEGER2", group, ELEMENT_INT16, 2)
    define(BASIC_INTEGER4, b"INTEGER4", group, ELEMENT_INT32, 4)
    define(BASIC_INTEGER8, b"INTEGER8", group, ELEMENT_INT64, 8)
    define(BASIC_INTEGER16, b"INTEGER16", group, ELEMENT_INT128, 16)
    group = GROUP_MULTI_LANGUAGE
    define(BASIC_AINT, b"AINT", group, ELEMENT_INT64, 8)
    define(BASIC_OFFSET, b"OFFSET", group, ELEMENT_INT64, 8)
    define(BASIC_COUNT, b"COUNT", group, ELEMENT_INT64, 8)


cdef void define_bytes_and_logicals() noexcept:
    define(BASIC_PACKED, b"PACKED", GROUP_NONE, ELEMENT_NONE, 1)
    define(BASIC_BYTE, b"BYTE", GROUP_BYTE, ELEMENT_UINT8, 1)
    define(BASIC_CHAR, b"CHAR", GROUP_NONE, ELEMENT_NONE, 1)
    define(BASIC_WCHAR, b"WCHAR", GROUP_NONE, ELEMENT_NONE, sizeof(wchar_t))
    define(BASIC_CHARACTER, b"CHARACTER", GROUP_NONE, ELEMENT_NONE, 1)
    define(BASIC_C_BOOL, b"C_BOOL", GROUP_LOGICAL, ELEMENT_UINT8, 1)
    define(BASIC_CXX_BOOL, b"CXX_BOOL", GROUP_LOGICAL, ELEMENT_UINT8, 1)
    define(BASIC_LOGICAL, b"LOGICAL", GROUP_LOGICAL, ELEMENT_INT32, 4)
    define(BASIC_LOGICAL1, b"LOGICAL1", GROUP_LOGICAL, ELEMENT_INT8, 1)
    define(BASIC_LOGICAL2, b"LOGICAL2", GROUP_LOGICAL, ELEMENT_INT16, 2)
    define(BASIC_LOGICAL4, b"LOGICAL4", GROUP_LOGICAL, ELEMENT_INT32, 4)
    define(BASIC_LOGICAL8, b"LOGICAL8", GROUP_LOGICAL, ELEMENT_INT64, 8)
    define(BASIC_LOGICAL16, b"LOGICAL16", GROUP_LOGICAL, ELEMENT_INT128, 16)


cdef void define_floats() noexcept:
    cdef TypeGroup group = GROUP_FLOATING
    cdef Py_ssize_t extended = sizeof(long double)
    define(BASIC_FLOAT, b"FLOAT", group, ELEMENT_FLOAT, 4)
    define(BASIC_DOUBLE, b"DOUBLE", group, ELEMENT_DOUBLE, 8)
    define(BASIC_LONG_DOUBLE, b"LONG_DOUBLE", group, ELEMENT_LONG_DOUBLE, extended)
    define(BASIC_FLOAT16_T, b"FLOAT16_T", group, ELEMENT_FLOAT16, 2)
    define(BASIC_BFLOAT16_T, b"BFLOAT16_T", GROUP_NONE, ELEMENT_NONE, 2)
    define(BASIC_REAL, b"REAL", group, ELEMENT_FLOAT, 4)
    define(BASIC_DOUBLE_PRECISION, b"DOUBLE_PRECISION", group, ELEMENT_DOUBLE, 8)
    define(BASIC_REAL2, b"REAL2", group, ELEMENT_FLOAT16, 2)
    define(BASIC_REAL4, b"REAL4", group, ELEMENT_FLOAT, 4)
    define(BASIC_REAL8, b"REAL8", group, ELEMENT_DOUBLE, 8)
    define(BASIC_REAL16, b"REAL16", group, ELEMENT_FLOAT128, 16)
    group = GROUP_COMPLEX
    define(BASIC_C_FLOAT_COMPLEX, b"C_FLOAT_COMPLEX", group, ELEMENT_FLOAT, 8)
    define(BASIC_C_DOUBLE_COMPLEX, b"C_DOUBLE_COMPLEX", group, ELEMENT_DOUBLE, 16)
    define(BASIC_C_LONG_DOUBLE_COMPLEX, b"C_LONG_DOUBLE_COMPLEX", group, ELEMENT_LONG_DOUBLE, 2 * extended)
    define(BASIC_CXX_FLOAT_COMPLEX, b"CXX_FLOAT_COMPLEX", group, ELEMENT_FLOAT, 8)
    define(BASIC_CXX_DOUBLE_COMPLEX, b"CXX_DOUBLE_COMPLEX", group, ELEMENT_DOUBLE, 16)
    define(BASIC_CXX_LONG_DOUBLE_COMPLEX, b"CXX_LONG_DOUBLE_COMPLEX", group, ELEMENT_LONG_DOUBLE, 2 * extended)
    define(BASIC_COMPLEX, b"COMPLEX", group, ELEMENT_FLOAT, 8)
    define(BASIC_DOUBLE_COMPLEX, b"DOUBLE_COMPLEX", group, ELEMENT_DOUBLE, 16)
    define(BASIC_COMPLEX4, b"COMPLEX4", group, ELEMENT_FLOAT16, 4)
    define(BASIC_COMPLEX8, b"COMPLEX8", group, ELEMENT_FLOAT, 8)
    define(BASIC_COMPLEX16, b"COMPLEX16", group, ELEMENT_DOUBLE, 16)
    define(BASIC_COMPLEX32, b"COMPLEX32", group, ELEMENT_FLOAT128, 32)


cdef void define_pairs() noexcept:
    cdef Py_ssize_t index = sizeof(int)
    define_pair(BASIC_SHORT_INT, b"SHORT_INT", signed_element(sizeof(short)), sizeof(short), index, sizeof(ShortInt))
    define_pair(BASIC_2INT, b"2INT", signed_element(sizeof(int)), sizeof(int), index, 2 * sizeof(int))
    define_pair(BASIC_LONG_INT, b"LONG_INT", signed_element(sizeof(long)), sizeof(long), index, sizeof(LongInt))
    define_pair(BASIC_FLOAT_INT, b"FLOAT_INT", ELEMENT_FLOAT, 4, index, 8)
    define_pair(BASIC_DOUBLE_INT, b"DOUBLE_INT", ELEMENT_DOUBLE, 8, index, sizeof(DoubleInt))
    define_pair(BASIC_LONG_DOUBLE_INT, b"LONG_DOUBLE_INT", ELEMENT_LONG_DOUBLE, sizeof(long double), index,
                sizeof(LongDoubleInt))
    define_pair(BASIC_2REAL, b"2REAL", ELEMENT_FLOAT, 4, 4, 8)
    define_pair(BASIC_2DOUBLE_PRECISION, b"2DOUBLE_PRECISION", ELEMENT_DOUBLE, 8, 8, 16)
    define_pair(BASIC_2INTEGER, b"2INTEGER", ELEMENT_INT32, 4, 4, 8)


define_integers()
define_bytes_and_logicals()
define_floats()
define_pairs()


def describe(int code) -> tuple:
    """`(name, group, element, size)` of a code, for Python tables; size in bytes."""
    if not 0 <= code < BASIC_TYPES:
        raise IndexError(f"{code} is no code of a predefined datatype")
    cdef Basic *basic = &basics[code]
    return (<bytes> basic.name).decode(), <int> basic.group, <int> basic.element, basic.size
