# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# cython: auto_pickle=False
# distutils: extra_compile_args=-Os
"""Conversion to and from the portable data representation "external32" (MPI-4.1, 14.5.2)."""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from ompy.core.basic cimport (
    BASIC_LONG, BASIC_LONG_INT, BASIC_UNSIGNED_LONG, BASIC_WCHAR, ELEMENT_LONG_DOUBLE, GROUP_COMPLEX, GROUP_PAIR, Basic, basics,
)
from ompy.core.convertor cimport pack_all, unpack_all
from ompy.core.typemap cimport Typemap

from sys import byteorder

from ompy.core.errors import ERR_CONVERSION, MPIError


cdef extern from *:
    """
    #ifdef __SIZEOF_FLOAT128__
    typedef __float128 ompy_binary128;
    #else
    typedef long double ompy_binary128;
    #endif
    """
    ctypedef long double binary128 "ompy_binary128"

# How a number changes its size.
cdef enum Change:
    SAME, SIGNED, UNSIGNED, EXTENDED

# One number of a predefined type: a complex has two, a pair one of each sort.
cdef struct Number:
    Change change
    Py_ssize_t native
    Py_ssize_t external

# Where a conversion is.
cdef struct Cursor:
    char *native
    char *external

# Bytes of data that are packed, then converted, at a time.
cdef enum:
    CHUNK = 32768

cdef bint LITTLE_ENDIAN = byteorder == "little"


cdef int numbers_of(int code, Number *numbers) noexcept:
    """The numbers of a predefined type, in order; returns how many, 1 or 2."""
    cdef Basic *basic = &basics[code]
    cdef int count = 2 if basic.group == GROUP_COMPLEX or basic.group == GROUP_PAIR else 1
    numbers[0].change = SAME
    numbers[0].native = basic.size // 2 if basic.group == GROUP_COMPLEX else basic.value_size
    numbers[0].external = numbers[0].native
    if basic.element == ELEMENT_LONG_DOUBLE:
        numbers[0].change = EXTENDED
        numbers[0].external = 16
    elif sizeof(long) == 8 and (code == BASIC_LONG or code == BASIC_LONG_INT):
        numbers[0].change = SIGNED
        numbers[0].external = 4
    elif sizeof(long) == 8 and code == BASIC_UNSIGNED_LONG:
        numbers[0].change = UNSIGNED
        numbers[0].external = 4
    elif code == BASIC_WCHAR and basic.size == 4:
        numbers[0].change = UNSIGNED
        numbers[0].external = 2
    numbers[1] = numbers[0]
    if basic.group == GROUP_PAIR:
        numbers[1].change = SAME
        numbers[1].native = numbers[1].external = basic.size - basic.value_size
    return count


cdef inline void copy_big_endian(char *target, const char *source, Py_ssize_t size) noexcept:
    """Between this machine's order of bytes and the network's: the same in both directions."""
    cdef Py_ssize_t i
    if LITTLE_ENDIAN:
        for i in range(size):
            target[i] = source[size - 1 - i]
    else:
        memcpy(target, source, size)


cdef int64_t read_integer(const char *source, Py_ssize_t size, bint signed) noexcept:
    cdef int64_t wide
    cdef uint32_t four
    cdef uint16_t two
    if size == 8:
        memcpy(&wide, source, 8)
        return wide
    if size == 4:
        memcpy(&four, source, 4)
        if signed:
            return <int32_t> four
        return four
    memcpy(&two, source, 2)
    return two


cdef void write_integer(char *target, int64_t value, Py_ssize_t size) noexcept:
    cdef uint32_t four = <uint32_t> value
    cdef uint16_t two = <uint16_t> value
    if size == 8:
        memcpy(target, &value, 8)
    elif size == 4:
        memcpy(target, &four, 4)
    else:
        memcpy(target, &two, 2)


cdef int to_external(Number *number, Cursor *at) except -1:
    cdef char changed[16]
    cdef int64_t value
    cdef long double extended
    cdef binary128 wide
    if number.change == SAME:
        copy_big_endian(at.external, at.native, number.native)
    elif number.change == EXTENDED:
        memcpy(&extended, at.native, sizeof(long double))
        wide = <binary128> extended
        memcpy(changed, &wide, 16)
        copy_big_endian(at.external, changed, 16)
    else:
        value = read_integer(at.native, number.native, number.change == SIGNED)
        write_integer(changed, value, number.external)
        if read_integer(changed, number.external, number.change == SIGNED) != value:
            raise MPIError(ERR_CONVERSION, f"{value} does not fit in the {number.external} bytes that its type has in "
                                           "external32")
        copy_big_endian(at.external, changed, number.external)
    at.native += number.native
    at.external += number.external
    return 0


cdef int to_native(Number *number, Cursor *at) noexcept:
    cdef char changed[16]
    cdef long double extended
    cdef binary128 wide
    copy_big_endian(at.native if number.change == SAME else changed, at.external, number.external)
    if number.change == EXTENDED:
        memcpy(&wide, changed, 16)
        extended = <long double> wide
        memcpy(at.native, &extended, sizeof(long double))
    elif number.change != SAME:
        write_integer(at.native, read_integer(changed, number.external, number.change == SIGNED), number.native)
    at.native += number.native
    at.external += number.external
    return 0


cdef int convert(object unit, Py_ssize_t repeat, Cursor *at, bint packing) except -1:
    """Convert `repeat` units of a signature."""
    cdef Number numbers[2]
    cdef Py_ssize_t _
    cdef int j, count
    if isinstance(unit, tuple):
        for _ in range(repeat):
            for part, times in unit:
                convert(part, times, at, packing)
        return 0
    count = numbers_of(unit, numbers)
    for _ in range(repeat):
        for j in range(count):
            if packing:
                to_external(&numbers[j], at)
            else:
                to_native(&numbers[j], at)
    return 0


cdef Py_ssize_t size_of(object unit) except -1:
    cdef Number numbers[2]
    cdef Py_ssize_t total = 0, times
    if isinstance(unit, tuple):
        for part, times in unit:
            total += times * size_of(part)
        return total
    total = numbers_of(unit, numbers)
    return numbers[0].external + (numbers[1].external if total == 2 else 0)


cdef Py_ssize_t external_size(Typemap typemap) except -1:
    return size_of(typemap.signature)


cdef int pack_external(char *address, Py_ssize_t count, Typemap typemap, char *target) except -1:
    return through_packed(address, count, typemap, target, True)


cdef int unpack_external(const char *source, char *address, Py_ssize_t count, Typemap typemap) except -1:
    return through_packed(address, count, typemap, <char *> source, False)


cdef int through_packed(char *address, Py_ssize_t count, Typemap typemap, char *external, bint packing) except -1:
    cdef Py_ssize_t some
    cdef Cursor at
    cdef char *packed
    if count == 0 or typemap.size == 0:
        return 0
    some = max(1, CHUNK // typemap.size)
    packed = <char *> malloc(some * typemap.size)
    if packed == NULL:
        raise MemoryError(f"no memory for {some * typemap.size} bytes to convert")
    at.external = external
    try:
        while count > 0:
            some = min(some, count)
            at.native = packed
            if packing:
                pack_all(address, some, typemap, packed)
            convert(typemap.signature, some, &at, packing)
            if not packing:
                unpack_all(packed, some * typemap.size, address, some, typemap)
            address += some * typemap.extent
            count -= some
    finally:
        free(packed)
    return 0
